//! Makes authorities and certificates, and does the steps of a plan to a [`State`].

use super::pem::{BACKDATED, Certificate, Key};
use super::plan::{Lifetimes, Step};
use super::state::{Authority, Leaf, State};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, date_time_ymd,
};
use std::time::Duration;

/// As in certificates that Helm makes.
const COMMON_NAME: &str = "spidernet.io";

/// A certificate cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum CannotMake {
    #[error("a certificate cannot be made")]
    Certificate(#[from] rcgen::Error),
    #[error("the authority's key cannot be used; delete the Secret, and everything is made anew")]
    Key,
    #[error("a certificate that was made cannot be read; a fault of this program")]
    Unreadable,
}

/// The state after the step.
pub(super) fn apply(
    step: &Step,
    state: &State,
    names: &[String],
    now: i64,
    lifetimes: &Lifetimes,
) -> Result<State, CannotMake> {
    let mut after = state.clone();
    match step {
        Step::Make => {
            let made = authority(now, lifetimes)?;
            after = State {
                bundle: vec![made.certificate.clone()],
                shown: Some(leaf(&made, names, now, lifetimes)?),
                authority: Some(made),
                next: None,
            };
        }
        Step::Announce { beside } => {
            let next = authority(now, lifetimes)?;
            after.bundle = beside.iter().chain([&next.certificate]).cloned().collect();
            after.next = Some(next);
        }
        Step::Issue => {
            let authority = state.authority.as_ref().ok_or(CannotMake::Key)?;
            after.shown = Some(leaf(authority, names, now, lifetimes)?);
        }
        Step::Promote => {
            let next = after.next.take().ok_or(CannotMake::Key)?;
            after.shown = Some(leaf(&next, names, now, lifetimes)?);
            // The first one signs.
            after.bundle.retain(|one| *one != next.certificate);
            after.bundle.insert(0, next.certificate.clone());
            after.authority = Some(next);
        }
        Step::Trust(bundle) => after.bundle.clone_from(bundle),
    }
    Ok(after)
}

fn authority(now: i64, lifetimes: &Lifetimes) -> Result<Authority, CannotMake> {
    let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = params(&[], now, now.saturating_add(lifetimes.authority))?;
    // Verifiers look for authorities by name: each has its own.
    let mark: String = pair.der_bytes().iter().skip(1).take(8).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name.push(DnType::CommonName, format!("spiderpool-controller-ca {mark}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let certificate = read(&params.self_signed(&pair)?)?;
    Ok(Authority { certificate, key: Key::of(&pair) })
}

fn leaf(authority: &Authority, names: &[String], now: i64, lifetimes: &Lifetimes) -> Result<Leaf, CannotMake> {
    let issuer = Issuer::from_ca_cert_der(authority.certificate.der(), authority.key.pair().ok_or(CannotMake::Key)?)?;
    let pair = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let end = now.saturating_add(lifetimes.certificate).min(authority.certificate.not_after);
    let mut params = params(names, now, end)?;
    params.distinguished_name.push(DnType::CommonName, COMMON_NAME);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = read(&params.signed_by(&pair, &issuer)?)?;
    Ok(Leaf { certificate, key: Key::of(&pair) })
}

fn params(names: &[String], now: i64, end: i64) -> Result<CertificateParams, CannotMake> {
    let at = |seconds: i64| date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let mut params = CertificateParams::new(names)?;
    (params.not_before, params.not_after) = (at(now.saturating_sub(BACKDATED)), at(end));
    params.distinguished_name = rcgen::DistinguishedName::new();
    Ok(params)
}

fn read(made: &rcgen::Certificate) -> Result<Certificate, CannotMake> {
    Certificate::all(made.pem().as_bytes()).into_iter().next().ok_or(CannotMake::Unreadable)
}
