FROM scratch
COPY root/ /
