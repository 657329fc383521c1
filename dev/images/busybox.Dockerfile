FROM scratch
COPY root /
ENV PATH=/bin
CMD ["/bin/sh"]
