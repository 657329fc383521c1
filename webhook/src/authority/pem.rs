//! Certificates and keys as they lie in a Secret or a `caBundle`: PEM in, what has to be known of them out.

use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Certificates begin this long before they are made: clocks differ.
pub(super) const BACKDATED: i64 = 3600;
/// Characters in a line of PEM.
const LINE: usize = 64;

/// One certificate. Two with the same bytes are one.
#[derive(Clone)]
pub(super) struct Certificate {
    der: CertificateDer<'static>,
    pub(super) subject: String,
    pub(super) issuer: String,
    /// Seconds since the epoch.
    pub(super) not_before: i64,
    /// Seconds since the epoch.
    pub(super) not_after: i64,
    /// DNS names and addresses, in order.
    pub(super) names: Vec<String>,
    public_key: Vec<u8>,
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

impl Eq for Certificate {}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} until {}", self.subject, self.not_after)
    }
}

impl Certificate {
    fn of(der: CertificateDer<'static>) -> Option<Self> {
        let (_, read) = X509Certificate::from_der(&der).ok()?;
        let names = read.subject_alternative_name().ok().flatten();
        let mut names: Vec<String> =
            names.map(|names| names.value.general_names.iter().filter_map(name).collect()).unwrap_or_default();
        names.sort_unstable();
        let certificate = Self {
            subject: read.subject().to_string(),
            issuer: read.issuer().to_string(),
            not_before: read.validity().not_before.timestamp(),
            not_after: read.validity().not_after.timestamp(),
            names,
            public_key: read.public_key().raw.to_vec(),
            der: CertificateDer::from(Vec::new()),
        };
        Some(Self { der, ..certificate })
    }

    /// Those that can be read; a bundle may hold others.
    pub(super) fn all(pem: &[u8]) -> Vec<Self> {
        let mut all = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem).flatten().filter_map(Self::of) {
            if !all.contains(&certificate) {
                all.push(certificate);
            }
        }
        all
    }

    pub(super) fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    pub(super) fn is_valid(&self, now: i64) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }

    /// When it was made, if we made it.
    pub(super) fn made(&self) -> i64 {
        self.not_before.saturating_add(BACKDATED)
    }

    /// The moment from which a third of its life is left.
    pub(super) fn last_third(&self) -> i64 {
        self.not_after.saturating_sub(self.not_after.saturating_sub(self.made()) / 3)
    }

    /// Whether the other one signed it: by name and signature.
    pub(super) fn is_of(&self, authority: &Self) -> bool {
        let (own, signer) = (X509Certificate::from_der(&self.der), X509Certificate::from_der(&authority.der));
        let (Ok((_, own)), Ok((_, signer))) = (own, signer) else { return false };
        self.issuer == authority.subject && own.verify_signature(Some(signer.public_key())).is_ok()
    }

    pub(super) fn pem(&self) -> String {
        use base64::Engine;
        let text = base64::engine::general_purpose::STANDARD.encode(&self.der);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        let mut rest = text.as_str();
        while let Some((line, after)) = rest.split_at_checked(LINE.min(rest.len())).filter(|(line, _)| !line.is_empty())
        {
            pem.push_str(line);
            pem.push('\n');
            rest = after;
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        pem
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress([a, b, c, d]) => Some(std::net::Ipv4Addr::new(*a, *b, *c, *d).to_string()),
        GeneralName::IPAddress(bytes) => {
            let bytes: [u8; 16] = (*bytes).try_into().ok()?;
            Some(std::net::Ipv6Addr::from(bytes).to_string())
        }
        _ => None,
    }
}

/// A private key, PEM. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(a key)")
    }
}

impl Key {
    pub(super) fn of(pair: &KeyPair) -> Self {
        Self(pair.serialize_pem())
    }

    /// Text that holds a key that can sign.
    pub(super) fn read(pem: &[u8]) -> Option<Self> {
        let key = Self(String::from_utf8(pem.to_vec()).ok()?);
        key.pair().map(|_| key)
    }

    pub(super) fn pair(&self) -> Option<KeyPair> {
        KeyPair::from_pem(&self.0).ok()
    }

    pub(super) fn belongs_to(&self, certificate: &Certificate) -> bool {
        self.pair().is_some_and(|pair| pair.subject_public_key_info() == certificate.public_key)
    }

    pub(super) fn pem(&self) -> &str {
        &self.0
    }
}
