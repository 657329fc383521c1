//! Certificate, key and whom the server trusts.

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authority of clients; they need a certificate of it.
    pub client_ca: Option<PathBuf>,
}

/// TLS cannot be spoken with these files.
#[derive(Debug, thiserror::Error)]
pub enum InvalidIdentity {
    /// A file is missing or no PEM.
    #[error("cannot read {0}, which must be in PEM")]
    Unreadable(PathBuf, #[source] pem::Error),
    /// Key and certificate do not go together, or are of no use.
    #[error("certificate or key cannot be used")]
    Pair(#[source] rustls::Error),
    /// The authority of clients is of no use.
    #[error("a certificate in {0} cannot be used as authority of clients")]
    Authority(PathBuf, #[source] rustls::Error),
    /// There is no authority in the file.
    #[error("clients cannot be told apart by {0}")]
    Verifier(PathBuf, #[source] VerifierBuilderError),
}

impl Identity {
    pub(super) fn load(&self) -> Result<ServerConfig, InvalidIdentity> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(InvalidIdentity::Pair)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|source| InvalidIdentity::Authority(path.clone(), source))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(
                    verifier.map_err(|source| InvalidIdentity::Verifier(path.clone(), source))?,
                )
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key);
        let key = key.map_err(|source| InvalidIdentity::Unreadable(self.key.clone(), source))?;
        let chain = certificates(&self.certificate)?;
        let mut config = builder.with_single_cert(chain, key).map_err(InvalidIdentity::Pair)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, InvalidIdentity> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|source| InvalidIdentity::Unreadable(path.to_owned(), source))
}
