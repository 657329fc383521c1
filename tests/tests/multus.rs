//! Multus's own reader and ours on one corpus: what both of them make of each annotation.

use k8s_api::multus;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tests::process::run;

/// Written by hand, from the grammar's corners and from bug reports.
const CORPUS: [&str; 61] = [
    "[null]",
    "a",
    "a,b",
    "a,,b",
    ",",
    "a,",
    ",a",
    " a , b ",
    "ns/a",
    "ns/a@net1",
    "a@net1",
    "a@",
    "@a",
    "/a",
    "a/",
    "a/b/c",
    "a@b@c",
    "ns /a",
    "ns/ a",
    "a @ b",
    "ns@x/a",
    "A",
    "a_b",
    "a.b",
    "-a",
    "a-",
    "a\tb",
    "a\nb",
    "\n a,\n\tb\n",
    "💥",
    "a@0123456789abcde",
    "a@0123456789abcdef",
    "a@b/c",
    "a@b c",
    "null",
    "true",
    "5",
    "[",
    "{",
    "\"",
    "\"a\"",
    "[]",
    "[{}]",
    "{}",
    r#"{"name":"a"}"#,
    r#"[{"name":"a"}]"#,
    r#"[{"name":"a"},{"name":"b","namespace":"c"}] "#,
    r#"[{"name":"a"}] x"#,
    r#"[{"NAME":"a","nameSpace":"b","INTERFACE":"c"}]"#,
    r#"[{"name":"a","Name":"b"}]"#,
    r#"[{"Name":"b","name":"a"}]"#,
    r#"[{"name":5}]"#,
    r#"[{"name":null}]"#,
    r#"[{"name":"other/x"}]"#,
    r#"[{"name":"a","interface":"i","interfaceRequest":"j"}]"#,
    r#"[{"name":"a","interfaceRequest":"j"}]"#,
    r#"[{"name":"a","default-route":["10.0.0.1","", "x"]}]"#,
    r#"[{"name":"a","default-route":["10.0.0.1",""]}]"#,
    r#"[{"name":"a","ips":null,"mac":null,"portMappings":null,"bandwidth":null,"cni-args":null}]"#,
    r#"["a"]"#,
    r"[5]",
];

/// One field of a network in JSON, right or wrong.
fn field() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        r#""""#,
        r#""a""#,
        r#""ns/a""#,
        r#""10.0.0.1""#,
        r#""10.0.0.1/24""#,
        r#""10.0.0.1/33""#,
        r#""010.0.0.1""#,
        r#""fe80::1""#,
        r#""fe80::1%eth0""#,
        r#""::ffff:1.2.3.4""#,
        r#""02:00:00:00:00:01""#,
        r#""02-00-00-00-00-01""#,
        r#""0200.0000.0001""#,
        r#""02:00:00:00:00""#,
        r#""02:00:00:00:00:0g""#,
        r#""02:00:00:00:00:01:02:03""#,
        "null",
        "5",
        "-1",
        "1.5",
        "1e3",
        "true",
        "[]",
        r#"[""]"#,
        r#"["a"]"#,
        r#"["10.0.0.1"]"#,
        r#"["10.0.0.1/24"]"#,
        "[null]",
        "[5]",
        "{}",
        r#"{"a":1}"#,
        r#"[{"hostPort":80,"containerPort":8080,"protocol":"tcp","hostIP":"x"}]"#,
        r#"[{"hostPort":"80"}]"#,
        r#"[{"hostPort":1.5}]"#,
        r#"[{"protocol":5}]"#,
        r#"{"ingressRate":1,"egressBurst":2}"#,
        r#"{"ingressRate":"1"}"#,
    ]);
    let key = prop::sample::select(vec![
        "name",
        "name",
        "Name",
        "namespace",
        "NAMESPACE",
        "interface",
        "interfaceRequest",
        "mac",
        "infiniband-guid",
        "ips",
        "IPs",
        "deviceID",
        "cni-args",
        "default-route",
        "portMappings",
        "bandwidth",
        "other",
    ]);
    (key, text).prop_map(|(key, value)| format!("{key:?}:{value}"))
}

fn annotation() -> impl Strategy<Value = String> {
    let object = prop::collection::vec(field(), 0..4).prop_map(|fields| format!("{{{}}}", fields.join(",")));
    let objects = prop::collection::vec(object, 0..3).prop_map(|objects| format!("[{}]", objects.join(", ")));
    let item = "[ ]{0,1}([a-zA-Z0-9_.-]{0,5}/){0,2}[a-z0-9A-Z.-]{0,6}(@[a-z0-9/ ]{0,18}){0,2}[ ]{0,1}";
    let list = prop::collection::vec(item, 1..4).prop_map(|items| items.join(","));
    prop_oneof![objects, list, "\\PC{0,30}", r#"[\[\]{}":,a-z0-9 ]{0,24}"#]
}

#[test]
fn both_read_the_same() {
    let programs = run("dev/binaries/build", ["multus"]);
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(20_261_129), ..Config::default() });
    let mut made = || annotation().new_tree(&mut runner).expect("a value").current();
    let corpus: Vec<String> = CORPUS.iter().map(ToString::to_string).chain((0..20_000).map(|_| made())).collect();

    let mut reader = Command::new(Path::new(&programs).join("multus-grammar"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("dev/binaries/build makes it");
    let input = serde_json::to_vec(&corpus).expect("JSON");
    let mut stdin = reader.stdin.take().expect("piped");
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = reader.wait_with_output().expect("it ends");
    writing.join().expect("no panic").expect("it reads all");
    let theirs: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(theirs.len(), corpus.len());

    let (mut accepted, mut refused, mut crashed) = (0, 0, 0);
    for (text, theirs) in corpus.iter().zip(&theirs) {
        // An empty annotation names nothing here and there; only that reader calls it an error.
        if text.is_empty() {
            continue;
        }
        let ours = multus::networks(text, "team-a");
        if theirs["crashed"] == true {
            assert!(ours.is_err(), "{text:?} crashes Multus");
            crashed += 1;
        } else if theirs["refused"] == true {
            assert!(ours.is_err(), "Multus refuses {text:?}, and we read {ours:?}");
            refused += 1;
        } else {
            let networks = theirs["networks"].as_array().cloned().unwrap_or_default();
            let ours =
                ours.unwrap_or_else(|error| panic!("Multus reads {text:?} as {networks:?}, and we say: {error}"));
            let ours: Vec<Value> =
                ours.into_iter().map(|one| serde_json::json!([one.namespace, one.name, one.interface])).collect();
            assert_eq!(ours, networks, "{text:?}");
            accepted += 1;
        }
    }
    println!(
        "one corpus, two readers: {accepted} read alike, {refused} refused by both, {crashed} crash Multus and are refused here"
    );
    assert!(accepted > 1_000 && refused > 1_000 && crashed > 0, "the corpus says something");
}
