//! What the Secret holds, read part by part: a part that cannot be used is not there.

use super::pem::{Certificate, Key};
use k8s_openapi::ByteString;
use std::collections::BTreeMap;

/// Everything that is trusted; the first one signs.
pub(super) const BUNDLE: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";
const NEXT: &str = "next.crt";
const NEXT_KEY: &str = "next.key";
pub(super) const CERTIFICATE: &str = "tls.crt";
pub(super) const KEY: &str = "tls.key";

/// The data of a Secret.
pub(super) type Data = BTreeMap<String, ByteString>;

/// One that can sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) certificate: Certificate,
    pub(super) key: Key,
}

/// A certificate that is shown, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) certificate: Certificate,
    pub(super) key: Key,
}

/// The Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// What the webhooks are to trust.
    pub(super) bundle: Vec<Certificate>,
    /// Signs what is shown. Always in the bundle.
    pub(super) authority: Option<Authority>,
    /// Will sign once every webhook trusts it.
    pub(super) next: Option<Authority>,
    pub(super) shown: Option<Leaf>,
}

impl State {
    pub(super) fn read(data: &Data) -> Self {
        let bytes = |name: &str| data.get(name).map_or(&[][..], |bytes| &bytes.0);
        let bundle = Certificate::all(bytes(BUNDLE));
        let authority = Key::read(bytes(AUTHORITY_KEY)).and_then(|key| {
            let certificate = bundle.iter().find(|certificate| key.belongs_to(certificate))?.clone();
            Some(Authority { certificate, key })
        });
        let pair = |certificate: &str, key: &str| {
            let certificate = Certificate::all(bytes(certificate)).into_iter().next()?;
            Key::read(bytes(key)).filter(|key| key.belongs_to(&certificate)).map(|key| (certificate, key))
        };
        Self {
            authority,
            next: pair(NEXT, NEXT_KEY).map(|(certificate, key)| Authority { certificate, key }),
            shown: pair(CERTIFICATE, KEY).map(|(certificate, key)| Leaf { certificate, key }),
            bundle,
        }
    }

    /// Puts it into the data; what is not ours stays.
    pub(super) fn write(&self, data: &mut Data) {
        let mut put = |name: &str, text: Option<String>| match text {
            Some(text) => drop(data.insert(name.to_owned(), ByteString(text.into_bytes()))),
            None => drop(data.remove(name)),
        };
        let key = |key: &Key| key.pem().to_owned();
        put(BUNDLE, Some(bundle(&self.bundle)));
        put(AUTHORITY_KEY, self.authority.as_ref().map(|authority| key(&authority.key)));
        put(NEXT, self.next.as_ref().map(|next| next.certificate.pem()));
        put(NEXT_KEY, self.next.as_ref().map(|next| key(&next.key)));
        put(CERTIFICATE, self.shown.as_ref().map(|shown| shown.certificate.pem()));
        put(KEY, self.shown.as_ref().map(|shown| key(&shown.key)));
    }
}

/// As it lies in `ca.crt` and in `caBundle`.
pub(super) fn bundle(certificates: &[Certificate]) -> String {
    certificates.iter().map(Certificate::pem).collect()
}
