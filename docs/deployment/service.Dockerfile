# The Assay service. Build in a checkout: podman build -f docs/deployment/service.Dockerfile -t assay .
FROM docker.io/library/python:3.11-slim-bookworm AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM docker.io/library/python:3.11-slim-bookworm
# Debian keeps one version of a package, and updates it for security.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git g++ ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/assay --shell /usr/sbin/nologin assay \
    && install -d -o assay -g assay -m 0700 /var/lib/assay

# With `--build-arg EXTRAS=postgresql,s3,ray` the service can use a Ray cluster.
ARG EXTRAS=postgresql,s3
# The wheel states the versions it needs.
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    wheel=$(echo /wheels/assay-*.whl) && pip install --no-cache-dir "${wheel}[${EXTRAS}]"

USER 10001
ENV ASSAY_DATA_DIR=/var/lib/assay ASSAY_HOST=0.0.0.0
VOLUME /var/lib/assay
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["assay"]
CMD ["serve"]
