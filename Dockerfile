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

FROM python:3.12-slim-trixie
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libgomp1 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
# TensorFlow names libclang as a dependency, but needs it only to be built.
# hadolint ignore=DL3013
RUN set -- /wheels/*.whl \
 && pip install --no-cache-dir "$1[train-cpu,gcs,s3]" \
 && pip uninstall --yes libclang \
 && rm -rf /wheels
# The root file system is read-only in a cluster: what is written goes to /tmp.
ENV HOME=/tmp \
    MPLCONFIGDIR=/tmp/matplotlib \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TMPDIR=/tmp
WORKDIR /tmp
USER 10001:10001
CMD ["qflock", "--help"]
