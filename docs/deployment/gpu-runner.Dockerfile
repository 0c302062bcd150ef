# A node of a Ray cluster that runs shards on an NVIDIA GPU; no token, no database.
# Build in a checkout: podman build -f docs/deployment/gpu-runner.Dockerfile -t assay-gpu-runner .
FROM docker.io/library/python:3.12-slim-bookworm AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM docker.io/nvidia/cuda:12.8.1-devel-ubuntu24.04
# Debian keeps one version of a package, and updates it for security.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git g++ clang ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home assay \
    && python3 -m venv /opt/assay

# The wheel states the versions it needs.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    wheel=$(echo /wheels/assay-*.whl) && /opt/assay/bin/pip install --no-cache-dir "${wheel}[ray,s3]" "ray[default]"

USER 10001
WORKDIR /home/assay
ENV PATH=/opt/assay/bin:$PATH
ENTRYPOINT ["ray"]
CMD ["start", "--block", "--address=ray-head:6379", "--num-gpus=1"]
