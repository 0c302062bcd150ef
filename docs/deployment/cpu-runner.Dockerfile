# A node of a Ray cluster that runs shards on CPUs; no token, no database.
# Build in a checkout: podman build -f docs/deployment/cpu-runner.Dockerfile -t assay-cpu-runner .
FROM docker.io/library/python:3.11-slim-bookworm AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM docker.io/library/python:3.11-slim-bookworm
# g++ and clang: inductor and tinygrad compile their kernels.
# Debian keeps one version of a package, and updates it for security.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git g++ clang ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home assay

# The wheel states the versions it needs.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    wheel=$(echo /wheels/assay-*.whl) && pip install --no-cache-dir "${wheel}[ray,s3]" "ray[default]"

USER 10001
WORKDIR /home/assay
ENTRYPOINT ["ray"]
CMD ["start", "--block", "--address=ray-head:6379"]
