# The image for training and inference. Kernels for every x86-64 processor are inside and picked at run time.
#   docker build --tag qflock:latest .

FROM python:3.12-slim-trixie AS build
RUN apt-get update \
 && apt-get install --yes --no-install-recommends g++ \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .
# hadolint ignore=DL3013
RUN python -m venv --without-pip /opt/qflock \
 && pip --python /opt/qflock/bin/python install --no-cache-dir --no-compile "$(echo /wheels/*.whl)[train-cpu,gcs,s3]"
# What nothing uses here is 900 MB: TensorFlow's headers, symbols and compiler, other packages' tests, the profiler's page.
RUN pip --python /opt/qflock/bin/python uninstall --yes libclang xprof duckdb tensorboard-data-server \
 && rm -r /opt/qflock/lib/python3.*/site-packages/tensorflow/include \
 && find /opt/qflock -type d -name tests -prune -exec rm -r {} + \
 && find /opt/qflock -path '*/tensorflow/*' -name '*.so*' -type f -exec strip --strip-unneeded {} + \
 && /opt/qflock/bin/python -m compileall -q -j 0 /opt/qflock/lib

FROM python:3.12-slim-trixie
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libgomp1 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/qflock /opt/qflock
# gcsfs would ask a second service which kind each bucket is; the job's bucket is an ordinary one.
# The root file system is read-only in a cluster: what is written goes to /tmp.
ENV GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT=false \
    HOME=/tmp \
    MPLCONFIGDIR=/tmp/matplotlib \
    PATH=/opt/qflock/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TMPDIR=/tmp
WORKDIR /tmp
USER 10001:10001
CMD ["qflock", "--help"]
