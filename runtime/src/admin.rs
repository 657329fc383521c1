//! The admin port: `/live`, `/ready`, `/metrics`.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::Full;
use kubert::admin::{Bound, Builder};
use prometheus_client::registry::Registry;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The port could not be opened.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot open the admin port {address}; if another program on this host has it, choose another (chart value {value})"
)]
pub struct Unavailable {
    address: SocketAddr,
    value: &'static str,
    source: kubert::admin::BindError,
}

/// `address`, or its IPv4 counterpart where it means every address of a host that has no IPv6.
#[must_use]
pub fn every_address(address: SocketAddr) -> SocketAddr {
    let every = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let has_ipv6 = || UdpSocket::bind((every, 0)).is_ok();
    if address.ip() == every && !has_ipv6() {
        return (Ipv4Addr::UNSPECIFIED, address.port()).into();
    }
    address
}

/// Opens the port, which people choose by this `value` of the chart, with `pages` of JSON beside the usual ones. It answers once [`Bound::spawn`] is called, and says
/// unready until its `readiness()` is set.
pub fn bind<F: Fn() -> String + Send + Sync + 'static>(
    address: SocketAddr,
    value: &'static str,
    metrics: Registry,
    pages: impl IntoIterator<Item = (&'static str, F)>,
) -> Result<Bound, Unavailable> {
    let builder = Builder::new(address).with_handler("/metrics", move |_| exposition(&metrics));
    let builder = pages.into_iter().fold(builder, |builder, (path, page)| {
        builder.with_handler(path, move |_| answer(StatusCode::OK, "application/json", page()))
    });
    builder.bind().map_err(|source| Unavailable { address, value, source })
}

fn exposition(metrics: &Registry) -> Response<Full<Bytes>> {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, metrics) {
        Ok(()) => answer(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", text),
        Err(error) => answer(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error.to_string()),
    }
}

fn answer(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
