# A node of a Ray cluster that runs shards on an NVIDIA GPU; no token, no database.
# Build in a checkout: podman build -f docs/deployment/gpu-runner.Dockerfile -t assay-gpu-runner .
FROM docker.io/library/python:3.11-slim-bookworm AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM docker.io/nvidia/cuda:12.8.1-devel-ubuntu24.04
# Debian keeps one version of a package, and updates it for security.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git g++ clang ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home assay

# The Python of the other images: a cluster has one version, and the service's toolchains are made for it.
# The wheel states the versions it needs.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir uv \
    && UV_PYTHON_INSTALL_DIR=/opt/python /opt/uv/bin/uv venv --python 3.11 /opt/assay \
    && wheel=$(echo /wheels/assay-*.whl) \
    && /opt/uv/bin/uv pip install --no-cache --python /opt/assay "${wheel}[ray,s3]" "ray[default]"

USER 10001
WORKDIR /home/assay
ENV PATH=/opt/assay/bin:$PATH
ENTRYPOINT ["ray"]
CMD ["start", "--block", "--address=ray-head:6379", "--num-gpus=1"]
