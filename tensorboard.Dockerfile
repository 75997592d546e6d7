# TensorBoard with the profiler's page, for runs in buckets; without TensorFlow.
#   docker build --file tensorboard.Dockerfile --tag qflock-tensorboard:latest .

FROM python:3.12-slim-trixie
# The fast data server reads buckets with its own code, which does not know the identity that a cluster gives to pods;
# without it TensorBoard reads through fsspec, as training writes.
RUN pip install --no-cache-dir "tensorboard>=2.20" "xprof>=2.20" "gcsfs>=2025.3" "s3fs>=2025.3" \
 && pip uninstall --yes tensorboard-data-server
# gcsfs would ask a second service which kind each bucket is; the job's bucket is an ordinary one.
ENV GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT=false \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TMPDIR=/tmp
WORKDIR /tmp
USER 10001:10001
CMD ["tensorboard", "--help"]
