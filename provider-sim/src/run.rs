//! Carries out a command.

use crate::args::{Check, Serve};
use anyhow::Context;
use ipam_core::Address;
use provider_sim::check::{self, Bounds, Credentials, Place, Target};
use provider_sim::{GRACE, Identity, Options, Settings, Sim, Token};
use runtime::Tasks;
use std::io::Write;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub(crate) fn serve(args: Serve) -> anyhow::Result<()> {
    let tls = args.tls_cert.zip(args.tls_key);
    let tls = tls.map(|(certificate, key)| Identity { certificate, key, client_ca: args.client_ca });
    let settings = Settings {
        capacity: NonZeroUsize::new(args.capacity),
        rate: args.rate.map(|rate| (rate, args.burst.get())),
        latency: args.latency,
        state: args.state,
        seed: args.seed,
    };
    let options = Options { listen: args.listen, settings, tls, token: args.token.map(Token) };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let sim = Sim::bind(options).await?;
        // The one line of standard output: whoever starts it with port 0 reads it.
        let mut out = std::io::stdout().lock();
        writeln!(out, "listening on {}", sim.url())?;
        out.flush()?;
        drop(out);
        let mut tasks = Tasks::default();
        let stop = tasks.stop();
        tasks.spawn("serving", sim.serve(stop));
        Ok(tasks.run(GRACE).await?)
    })
}

/// The tenth address of a subnet: the first ones are often the cloud's own.
const FIRST: u128 = 10;

pub(crate) fn check(args: Check) -> anyhow::Result<ExitCode> {
    let tenth = args.subnet.network().number().checked_add(FIRST);
    let tenth = tenth.and_then(|number| Address::new(args.subnet.family(), number));
    let first = args.first.or(tenth).filter(|first| args.subnet.contains(*first));
    let first = first.context("--first must lie in --subnet, which must have room for some forty addresses")?;
    let json = args.json;
    let target = Target {
        url: args.url,
        credentials: Credentials { token: args.token, ca: args.ca, identity: args.cert.zip(args.key) },
        place: Place { node: args.node, parent: args.parent_mac, subnet: args.subnet, first },
        only: args.only,
        bounds: Bounds { budget: args.budget, small_budget: args.small_budget, burst: args.burst, watch: args.watch },
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let stop = CancellationToken::new();
        let checking = check::check(target, stop.clone(), |line| {
            if !json {
                println!("{line}");
            }
        });
        let report = tokio::select! {
            report = checking => report?,
            never = stopped_by_signal(&stop) => match never? {},
        };
        if json {
            println!("{}", serde_json::to_string_pretty(&report)?);
        } else {
            println!("{report}");
        }
        Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The first signal goes to the clean-up, the second ends that as well.
async fn stopped_by_signal(stop: &CancellationToken) -> anyhow::Result<std::convert::Infallible> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut next = async || tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} };
    next().await;
    tracing::warn!("stopping: what may be bound is released first; a second signal ends that, too");
    stop.cancel();
    next().await;
    anyhow::bail!("stopped by a second signal; addresses may still be bound")
}
