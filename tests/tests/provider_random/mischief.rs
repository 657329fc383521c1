//! What goes wrong at a provider.

use serde_json::{Value, json};

/// At both calls alike, done or not.
const EVERYWHERE: [&str; 9] = [
    "cut-before",
    "cut-after",
    "cut-mid-answer",
    "partial-status-line",
    "hang",
    "hang-after",
    "slow-body",
    "endless-body",
    "redirect",
];
/// Answers whose content is wrong. Of a release nobody reads it.
const CONTENT: [&str; 10] = [
    "garbage",
    "empty",
    "missing",
    "extra",
    "duplicate",
    "wrong-subnet",
    "wrong-address-spelling",
    "bad-mac",
    "same-vlan",
    "no-vlan",
];

/// So often for each moment.
const LATE: usize = 2;

fn faults(operation: &str) -> Vec<Value> {
    let mut all: Vec<Value> = EVERYWHERE.iter().chain(&CONTENT).map(|kind| json!({"kind": kind})).collect();
    for kind in ["partial-status-line", "redirect"] {
        all.push(json!({"kind": kind, "work": false}));
    }
    for code in [400, 408, 409, 429, 499, 500, 502, 503, 504] {
        all.push(json!({"kind": "status", "code": code}));
    }
    for code in [500, 503] {
        all.push(json!({"kind": "status-after", "code": code}));
    }
    all.extend([
        json!({"kind": "cut-before", "reset": true}),
        json!({"kind": "cut-after", "reset": true}),
        json!({"kind": "slow", "ms": 50}),
        json!({"kind": "slow", "ms": 1200}),
        json!({"kind": "huge-body", "bytes": 2_000_000}),
        json!({"kind": "no-mac"}),
    ]);
    // What comes when nobody waits for it any more is what settling is for, so it is more frequent than the others.
    for ms in [300, 600, 900, 950] {
        for _ in 0..LATE {
            all.extend([json!({"kind": "late", "ms": ms}), json!({"kind": "proxy-504", "ms": ms})]);
        }
    }
    if operation == "allocate" {
        all.push(json!({"kind": "vlan-out-of-range", "vlan": 4095}));
        // (A provider that says 2xx to a release and does nothing has lost the address by itself.)
        // So has one that binds nothing and answers what looks like a binding.
        let told = CONTENT.iter().filter(|kind| !["no-vlan", "same-vlan"].contains(kind));
        for kind in told.chain(&["cut-mid-answer", "slow-body"]) {
            all.push(json!({"kind": kind, "work": false}));
        }
    }
    all
}

/// Every kind as often as any other, and all of them together in this share of calls.
pub fn rules(share: f64) -> [Value; 2] {
    ["allocate", "release"].map(|operation| {
        let faults = faults(operation);
        #[expect(clippy::cast_precision_loss, reason = "a few dozen")]
        let each = share / faults.len() as f64;
        let mut before = 0.0;
        let rules = faults.into_iter().map(|fault| {
            // Of those that are asked at all.
            let probability = each / (1.0 - before);
            before += each;
            json!({"operation": operation, "probability": probability, "fault": fault})
        });
        Value::Array(rules.collect())
    })
}
