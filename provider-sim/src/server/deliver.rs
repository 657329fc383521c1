//! An answer as a fault wants it to arrive.

use super::answer::{Answer, Content, text};
use super::cable::Cable;
use super::shared::Shared;
use crate::ask::Wanted;
use crate::fault::{Alteration, Shape};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::{HeaderValue, StatusCode, header};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// `HTTP/1.`
const PART_OF_STATUS_LINE: usize = 7;
/// What is sent at a time of bodies that are made up.
const CHUNK: usize = 8 * 1024;
/// Between two chunks of a body without an end: 8 MB a second at most.
const PACE: Duration = Duration::from_millis(1);
/// What was written has left by then.
const ON_ITS_WAY: Duration = Duration::from_millis(50);

impl Shared {
    /// Answers. A connection that is to be cut is cut in here.
    pub(super) async fn deliver(&self, shape: Shape, answer: Answer, cable: Option<Cable>) -> Response {
        match shape {
            Shape::Honest => answer.response(),
            Shape::After(pause) => {
                self.stopped.run_until_cancelled(sleep(pause)).await;
                answer.response()
            }
            Shape::Status { status, body, headers } => {
                let mut response = text(status, body.unwrap_or_default());
                response.headers_mut().extend(headers);
                response
            }
            Shape::Cut { reset } => cut(cable, reset).await,
            Shape::Silence => {
                self.stopped.cancelled().await;
                cut(cable, false).await
            }
            Shape::Half { reset } => half(&answer, cable, reset),
            Shape::PartialStatusLine { reset } => {
                if let Some(cable) = cable {
                    cable.cut_after(PART_OF_STATUS_LINE, reset);
                }
                answer.response()
            }
            Shape::Drip(pause) => {
                let bytes = stream::iter(answer.text().into_bytes());
                let slow = bytes.then(move |byte| async move {
                    sleep(pause).await;
                    Ok::<_, Infallible>(Bytes::copy_from_slice(&[byte]))
                });
                bodied(answer.status, Body::from_stream(slow))
            }
            Shape::Endless => {
                let blanks = stream::repeat(()).then(async |()| {
                    sleep(PACE).await;
                    Ok::<_, Infallible>(blanks(CHUNK))
                });
                bodied(answer.status, Body::from_stream(blanks))
            }
            Shape::Huge(bytes) => huge(&answer, bytes),
            Shape::Garbage => text(StatusCode::OK, "this is {no JSON".to_owned()),
            Shape::Empty => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            Shape::Redirect { status, location } => {
                let mut response = text(status, String::new());
                response.headers_mut().insert(header::LOCATION, location);
                response
            }
            Shape::Altered(alteration) => self.altered(alteration, answer).response(),
        }
    }

    /// Only what was bound can be told wrong; a refusal stays as it is.
    fn altered(&self, alteration: Alteration, mut answer: Answer) -> Answer {
        if let Content::Bound(bound) = &mut answer.body {
            let first = bound.addresses.first().and_then(|first| {
                let address = first.ip_address.parse().ok()?;
                let subnet = first.subnet.parse().ok()?;
                Some(Wanted { address, subnet, parent: first.parent_nic_mac.parse().ok()? })
            });
            let another = first.and_then(|first| self.lock().cloud.vlan_of_another(&bound.node_name, &first));
            alteration.apply(bound, another);
        }
        answer
    }
}

async fn cut(cable: Option<Cable>, reset: bool) -> Response {
    match cable {
        Some(cable) => cable.cut(reset).await,
        // There is a cable on every connection that the server accepts.
        None => std::future::pending().await,
    }
}

fn bodied(status: StatusCode, body: Body) -> Response {
    let mut response = text(status, String::new());
    *response.body_mut() = body;
    response
}

/// The length of all of it, half of it, and the end of the connection.
fn half(answer: &Answer, cable: Option<Cable>, reset: bool) -> Response {
    let whole = answer.text();
    let first = Bytes::copy_from_slice(whole.as_bytes().get(..whole.len() / 2).unwrap_or_default());
    let sent = stream::once(async move { Ok::<_, Infallible>(first) });
    let end = stream::once(async move {
        sleep(ON_ITS_WAY).await;
        match cable {
            Some(cable) => cable.cut(reset).await,
            None => std::future::pending().await,
        }
    });
    let mut response = bodied(answer.status, Body::from_stream(sent.chain(end)));
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    response
}

/// Blanks may follow JSON: whoever reads all of it finds nothing wrong.
fn huge(answer: &Answer, bytes: u64) -> Response {
    let whole = Bytes::from(answer.text());
    let mut left = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(whole.len());
    let length = whole.len().saturating_add(left);
    let rest = stream::iter(std::iter::from_fn(move || {
        let now = left.min(CHUNK);
        left = left.saturating_sub(now);
        (now > 0).then(|| blanks(now))
    }));
    let body = stream::iter([whole]).chain(rest).map(Ok::<_, Infallible>);
    let mut response = bodied(answer.status, Body::from_stream(body));
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn blanks(number: usize) -> Bytes {
    static BLANKS: [u8; CHUNK] = [b' '; CHUNK];
    Bytes::from_static(BLANKS.get(..number).unwrap_or(&BLANKS))
}
