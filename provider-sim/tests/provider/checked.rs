//! The check of providers: it passes on good ones, and each way to be wrong is found by the check that is for it.

use crate::process::Program;
use crate::stage::{LONG, Stage};
use futures::stream::{self, StreamExt};
use provider_sim::Settings;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// The longest that a run may take.
const RUN: Duration = Duration::from_mins(2);
/// Whoever is never late answers in this time on any machine.
const ROOMY: &[&str] = &["--small-budget", "1500ms"];
const SMALL: &[&str] = &["--small-budget", "300ms"];

/// Runs the check: its exit code and report.
async fn check(url: &str, more: &[&str]) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_provider-sim"));
    command.args(["check", url, "--json", "--watch", "1500ms", "--budget", "10s"]).args(more);
    let ended = timeout(RUN, command.kill_on_drop(true).output()).await.expect("in time").expect("it runs");
    let report = serde_json::from_slice(&ended.stdout);
    let report = report.unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&ended.stderr)));
    (ended.status.code().expect("it ends by itself"), report)
}

/// Names of checks that ended so.
fn ended(report: &Value, verdict: &str) -> Vec<String> {
    let lines = report["lines"].as_array().expect("a list").iter();
    let lines = lines.filter(|line| line["verdict"] == verdict);
    lines.map(|line| line["check"].as_str().expect("a name").to_owned()).collect()
}

/// The provider in Python, or a copy of it in which one text is another.
struct Python {
    url: String,
    _child: Child,
    _rest: Lines<BufReader<ChildStdout>>,
    _folder: Option<tempfile::TempDir>,
}

impl Python {
    async fn start(change: Option<(&str, &str)>, cloud: &str) -> Self {
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/python-provider/provider.py");
        let (script, folder): (PathBuf, _) = match change {
            None => (original, None),
            Some((from, to)) => {
                let text = std::fs::read_to_string(original).expect("it is there");
                assert_eq!(text.matches(from).count(), 1, "{from:?} is there once");
                let folder = tempfile::tempdir().expect("a folder");
                let copy = folder.path().join("provider.py");
                std::fs::write(&copy, text.replace(from, to)).expect("it can be written");
                (copy, Some(folder))
            }
        };
        let mut command = Command::new("python3");
        command.arg(script).env("CLOUD", cloud).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("python3 is installed");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = timeout(LONG, lines.next_line()).await.expect("in time").expect("a text").expect("a line");
        let url = line.strip_prefix("listening on ").expect("where it listens").to_owned();
        Self { url, _child: child, _rest: lines, _folder: folder }
    }
}

/// What is never late cannot be seen to keep its budget; everything else can.
#[tokio::test]
async fn good_providers_pass_and_nothing_stays_bound() {
    let python = Python::start(None, "0").await;
    let stage = Stage::plain().await;
    let (of_python, of_ours) = tokio::join!(check(&python.url, ROOMY), check(&stage.url, ROOMY));
    for (code, report) in [of_python, of_ours] {
        assert_eq!((code, ended(&report, "fail")), (0, vec![]), "{report:#}");
        assert_eq!(ended(&report, "skip"), ["nothing-after-budget"], "{report:#}");
        assert_eq!(ended(&report, "ok").len(), 16, "{report:#}");
    }
    assert_eq!((stage.bound().len(), stage.cloud.foreign_releases()), (0, 0));
}

/// Both need more than the small budget for a call, and say so at once.
#[tokio::test]
async fn good_providers_keep_their_budget() {
    let python = Python::start(None, "1.1").await;
    let stage = Stage::new(Settings { latency: Duration::from_millis(1100), ..Settings::default() }).await;
    let only =
        ["--small-budget", "1s", "--burst", "4", "--only", "nothing-after-budget", "--only", "answers-within-budget"];
    let (of_python, of_ours) = tokio::join!(check(&python.url, &only), check(&stage.url, &only));
    for (code, report) in [of_python, of_ours] {
        assert_eq!(code, 0, "{report:#}");
        assert_eq!(ended(&report, "ok"), ["nothing-after-budget", "answers-within-budget"], "{report:#}");
    }
    assert!(stage.bound().is_empty());
}

/// Runs checks against a copy of the provider with one text changed: all of them must fail.
async fn breaks(from: &str, to: &str, failing: &[&str]) {
    let python = Python::start(Some((from, to)), "0").await;
    let only = failing.iter().flat_map(|name| ["--only", name]);
    let (code, report) = check(&python.url, &SMALL.iter().copied().chain(only).collect::<Vec<_>>()).await;
    assert_eq!(
        (code, ended(&report, "fail")),
        (1, failing.iter().map(ToString::to_string).collect()),
        "{to}: {report:#}"
    );
}

/// Side by side, a few at a time: all of them wait most of the time.
#[tokio::test]
async fn each_way_to_be_wrong_is_found_by_its_check() {
    let cases = [wrong_answers(), wrong_releases(), wrong_about_calls()].concat();
    let number = cases.len();
    let found = stream::iter(cases).map(async |(from, to, failing)| breaks(from, &to, failing).await);
    assert_eq!(found.buffer_unordered(5).count().await, number);
}

/// A text of the provider, what stands there instead, and the checks that must fail.
type Case = (&'static str, String, &'static [&'static str]);

fn wrong_answers() -> Vec<Case> {
    let answer = "answer.append((address, subnet, nic, holder[\"mac\"], holder[\"vlan\"]))";
    let with = |change: &str| format!("{answer}\n            {change}");
    vec![
        (
            answer,
            with("answer.append((\"203.0.113.1\", subnet, nic, \"02:00:00:00:00:01\", 4000))"),
            &["allocate-binds"],
        ),
        (answer, with("answer[-1] = (address.replace(\".0.\", \".00.\"), *answer[-1][1:])"), &["allocate-binds"]),
        (answer, with("answer = answer[:2]"), &["several-at-once"]),
        (answer, with("answer = [(*one[:3], \"\", one[4]) for one in answer]"), &["mac-and-vlan"]),
        (answer, with("answer = [(*one[:4], None) for one in answer]"), &["mac-and-vlan"]),
        (answer, with("answer = [(one[0], \"192.0.2.0/24\", *one[2:]) for one in answer]"), &["repeats-request"]),
        (
            "            if vlan not in used:",
            "            if vlan == 7:".to_owned(),
            &["several-at-once", "distinct-vlans"],
        ),
        ("self.answer(200, call(", "self.answer(302, call(".to_owned(), &["allocate-binds"]),
    ]
}

fn wrong_releases() -> Vec<Case> {
    let unbind = "self.bound.pop(address, None)";
    let strict = "if not self.bound.pop(address, None):\n                raise Refused(404, \"not found\")";
    let pod = "        text(body, field, False)\n    text(body, \"nodeName\")";
    vec![
        (unbind, strict.to_owned(), &["release-again", "release-never-bound"]),
        (
            unbind,
            "pass".to_owned(),
            &["binds-once", "allocate-after-release", "release-without-nic", "release-without-pod"],
        ),
        ("    nic(body, False)", "    nic(body, True)".to_owned(), &["release-without-nic"]),
        (pod, pod.replace(", False", ""), &["release-without-pod"]),
        ("    cloud.unbind(address)\n    return {}", "    raise Refused(500, \"no\")".to_owned(), &["release"]),
    ]
}

fn wrong_about_calls() -> Vec<Case> {
    let asked = "names = {field: text(body, field, False)";
    let limit = "budget = self.headers.get(\"X-Request-Timeout-Ms\", \"\")";
    let fixed = format!("{limit}\n            budget = budget if len(budget) < 5 or budget == \"10000\" else \"x\"");
    vec![
        ("holder = self.bound.get(address) or {", "holder = {".to_owned(), &["allocate-again"]),
        (
            asked,
            format!("if \"providerCheck\" in body:\n        raise Refused(400, \"unknown field\")\n    {asked}"),
            &["unknown-fields"],
        ),
        (limit, fixed, &["budgets"]),
    ]
}

/// Of both what the caller has given up is bound later, one without an answer and one after a complete one.
#[tokio::test]
async fn bindings_after_their_budget_are_found() {
    let look = "    if time.monotonic() + CLOUD >= deadline:";
    let queue = "    if deadline - time.monotonic() < 1:\n        time.sleep(3)\n    if False:";
    let stage = Stage::plain().await;
    let rules = json!([{"operation": "allocate", "match": {"podName": "provider-check-30"}, "times": 1,
        "fault": {"kind": "proxy-504", "ms": 3000, "beyondBudget": true}}]);
    stage.cloud.add_faults(&rules.to_string()).expect("rules");
    let ((), (code, report)) =
        tokio::join!(breaks(look, queue, &["nothing-after-budget", "answers-within-budget"]), check(&stage.url, SMALL));
    assert_eq!(code, 1);
    assert!(ended(&report, "fail").contains(&"nothing-after-budget".to_owned()), "{report:#}");
    assert!(stage.cloud.faults().iter().all(|fault| fault.hits == 1), "one of the burst was hit");
}

/// Addresses that somebody has are not taken from him, by no check and not in the end.
#[tokio::test]
async fn what_somebody_else_has_stays_his() {
    let stage = Stage::plain().await;
    for host in 10..60 {
        let mut body = crate::stage::allocate("stranger", &[&format!("198.18.0.{host}")]);
        body["iaasIPsAllocationRequest"][0]["subnet"] = json!("198.18.0.0/24");
        let (status, answer) = stage.post(provider_sim::wire::ALLOCATE, 50_000, &body).await;
        // Those of the first checks are free, so that the others run.
        if host == 10 {
            stage.cloud.forget().expect("no state file");
        }
        assert_eq!(status, 200, "{answer}");
    }
    let before = stage.cloud.bindings();
    let (code, report) = check(&stage.url, &["--small-budget", "1500ms"]).await;
    assert_eq!((code, report["leftBound"].as_array().map(Vec::len)), (1, Some(0)), "{report:#}");
    assert!(report.to_string().contains("choose others with --first"), "{report:#}");
    let after = stage.cloud.bindings();
    let lost: Vec<_> =
        before.iter().filter(|binding| !after.contains(binding)).map(|binding| &binding.ip_address).collect();
    assert!(lost.is_empty(), "{lost:?} were released");
}

#[tokio::test]
async fn a_signal_ends_it_with_nothing_bound() {
    let stage =
        Stage::faulty(json!([{"match": {"podName": "provider-check-3"}, "fault": {"kind": "hang-after"}}])).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_provider-sim"));
    command.args(["check", &stage.url, "--budget", "2s"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().expect("it starts");
    crate::stage::until("a binding whose call hangs", || {
        stage.cloud.bindings().iter().any(|binding| binding.pod_name == "provider-check-3")
    })
    .await;
    let id = child.id().expect("it runs").to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    let code = timeout(RUN, child.wait()).await.expect("in time").expect("it can be waited for").code();
    assert_eq!(code, Some(1));
    assert!(stage.bound().is_empty());
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_one_failure_not_many() {
    let program = Program::serve(&[]).await;
    let url = program.url.clone();
    drop(program);
    let (code, report) = check(&url, SMALL).await;
    assert_eq!((code, ended(&report, "fail")), (1, vec!["allocate-binds".to_owned()]), "{report:#}");
}
