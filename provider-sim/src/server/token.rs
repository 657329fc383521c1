//! What a caller has to know.

use http::{HeaderMap, header};
use std::io;
use std::path::PathBuf;

/// A file with the token that callers send as `Authorization: Bearer …`. It is read for each request, so that a new token holds
/// at once.
#[derive(Clone, Debug)]
pub struct Token(pub PathBuf);

/// The token cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoToken {
    /// The file cannot be read.
    #[error("cannot read the token in {0}")]
    Unreadable(PathBuf, #[source] io::Error),
    /// There is nothing in it.
    #[error("the file {0} has no token in it")]
    Empty(PathBuf),
}

impl Token {
    /// Whether these are the headers of somebody who knows it.
    pub fn admits(&self, headers: &HeaderMap) -> Result<bool, NoToken> {
        let text = std::fs::read(&self.0).map_err(|source| NoToken::Unreadable(self.0.clone(), source))?;
        let token = text.trim_ascii();
        if token.is_empty() {
            return Err(NoToken::Empty(self.0.clone()));
        }
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let sent = given.next().and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        Ok(given.next().is_none() && sent == Some(token))
    }
}
