//! Bodies of answers, bounded.

use super::error::{CallError, chain};
use reqwest::Response;
use std::time::Duration;

/// A good answer has some hundred bytes.
const MOST: usize = 1 << 20;
/// For a body that nobody reads.
const PATIENCE: Duration = Duration::from_millis(100);
const REST: usize = 1 << 16;

/// All of it.
pub(super) async fn whole(mut response: Response) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| CallError::Body(chain(error)))? {
        if body.len() + chunk.len() > MOST {
            return Err(CallError::Body(format!("it is longer than {MOST} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// To its end if that comes soon.
pub(super) async fn rest(mut response: Response) {
    let read = async {
        let mut length = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            length += chunk.len();
            if length > REST {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(PATIENCE, read).await;
}
