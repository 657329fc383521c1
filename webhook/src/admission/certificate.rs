//! The certificate and key that the webhook shows: proven before use, followed while it runs.

use crate::metrics::{Metrics, count};
use runtime::conf_file::read_text;
use runtime::follow::{Reading, follow};
use runtime::inotify::NoInotify;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Where the two files lie.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// A certificate with its chain, and the key that belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    certified: Arc<CertifiedKey>,
    /// Seconds since the epoch.
    not_before: i64,
    /// Seconds since the epoch.
    not_after: i64,
}

/// Two pairs with one certificate have one key.
impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.certified.cert == other.certified.cert
    }
}

/// The pair cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadPair {
    #[error("cannot read {0}")]
    Read(PathBuf, #[source] io::Error),
    #[error("{0} holds no certificate in PEM")]
    Certificate(PathBuf),
    #[error("{0} holds no private key in PEM")]
    Key(PathBuf),
    #[error("certificate and key cannot be used together")]
    Pair(#[source] rustls::Error),
    #[error("the certificate cannot be read")]
    X509(#[source] x509_parser::error::X509Error),
    #[error("the certificate is not valid now")]
    NotNow,
    #[error("no TLS implementation is installed")]
    NoCrypto,
}

impl Pair {
    pub(crate) fn is_valid_now(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        (self.not_before..=self.not_after).contains(&now)
    }
}

/// Reads and proves the pair. An expired one is one still: at the start there is nothing better to show.
pub(crate) fn load(files: &Files) -> Result<Pair, BadPair> {
    let read = |path: &Path| read_text(path).map_err(|source| BadPair::Read(path.to_owned(), source));
    let (certificate, key) = (read(&files.certificate)?, read(&files.key)?);
    prove((&files.certificate, certificate.as_bytes()), (&files.key, key.as_bytes()))
}

/// Proves a pair, PEM with the names under which it lies.
pub(crate) fn prove(certificate: (&Path, &[u8]), key: (&Path, &[u8])) -> Result<Pair, BadPair> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.1).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or_else(|| BadPair::Certificate(certificate.0.to_owned()))?;
    let key = PrivateKeyDer::from_pem_slice(key.1).map_err(|_| BadPair::Key(key.0.to_owned()))?;
    let (not_before, not_after) = validity(chain.first().map(AsRef::as_ref).unwrap_or_default())?;
    let provider = CryptoProvider::get_default().ok_or(BadPair::NoCrypto)?;
    let certified = CertifiedKey::from_der(chain, key, provider).map_err(BadPair::Pair)?;
    Ok(Pair { certified: Arc::new(certified), not_before, not_after })
}

fn validity(certificate: &[u8]) -> Result<(i64, i64), BadPair> {
    let (_, certificate) =
        x509_parser::parse_x509_certificate(certificate).map_err(|error| BadPair::X509(error.into()))?;
    let validity = certificate.validity();
    Ok((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// The pair in use, and the task that keeps it. A changed pair that cannot be used leaves the old one in its place.
pub(crate) fn watch(
    files: Files,
    first: Pair,
    metrics: Metrics,
) -> Result<(watch::Receiver<Pair>, impl Future<Output = Result<(), Infallible>>), NoInotify> {
    let folder = files.certificate.parent().unwrap_or(Path::new(".")).to_owned();
    tell(&first, &metrics);
    let shown = first.clone();
    let prove = move || {
        let pair = load(&files)?;
        // The one of the start stays acceptable: that it has expired since is the alert's to say.
        if pair == shown || pair.is_valid_now() { Ok(pair) } else { Err(BadPair::NotNow) }
    };
    follow(&folder, first, prove, move |reading| match reading {
        Reading::Applied { now, .. } => {
            count(&metrics.certificate_reloads, "applied");
            tell(now, &metrics);
        }
        Reading::Refused(error) => {
            count(&metrics.certificate_reloads, "refused");
            tracing::error!(error, "the changed certificate is not used; the last good one stays");
        }
    })
}

pub(crate) fn tell(pair: &Pair, metrics: &Metrics) {
    metrics.certificate_not_after.set(pair.not_after);
    tracing::info!(not_after = pair.not_after, "certificate in use");
}

/// Shows the pair that is in use when a connection begins.
#[derive(Debug)]
pub(crate) struct InUse(pub(crate) watch::Receiver<Pair>);

impl ResolvesServerCert for InUse {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.borrow().certified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair_in(folder: &Path) -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        std::fs::write(folder.join("tls.crt"), &certificate).expect("writable");
        std::fs::write(folder.join("tls.key"), &key).expect("writable");
        (certificate, key)
    }

    fn files(folder: &Path) -> Files {
        Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") }
    }

    #[test]
    fn a_pair_is_proven() {
        runtime::install_crypto();
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(load(&files(folder.path())), Err(BadPair::Read(..))));
        let (certificate, key) = pair_in(folder.path());
        let good = load(&files(folder.path())).expect("a pair");
        assert!(good.not_before < good.not_after);
        pair_in(folder.path());
        std::fs::write(folder.path().join("tls.key"), &key).expect("writable");
        assert!(matches!(load(&files(folder.path())), Err(BadPair::Pair(_))), "a key of another certificate");
        std::fs::write(folder.path().join("tls.crt"), &certificate[..certificate.len() / 2]).expect("writable");
        assert!(matches!(load(&files(folder.path())), Err(BadPair::Certificate(_))), "half written");
        std::fs::write(folder.path().join("tls.crt"), &certificate).expect("writable");
        assert!(load(&files(folder.path())).is_ok_and(|again| again == good));
        std::fs::write(folder.path().join("tls.key"), "").expect("writable");
        assert!(matches!(load(&files(folder.path())), Err(BadPair::Key(_))));
    }
}
