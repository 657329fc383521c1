//! How long an ADD takes, ours and the community's in turn.

use crate::host::{Master, Sandbox};
use crate::run::{Call, THEIRS, call, manual, ours};
use std::time::{Duration, Instant};

const ROUNDS: usize = 40;

#[test]
#[ignore = "in the guest"]
fn an_add_takes_no_more_than_twice_as_long() {
    let master = Master::new();
    let conf = manual("1.0.0", &master.0, 7);
    let (program, mut times) = (ours(), [const { Vec::new() }; 2]);
    for _ in 0..ROUNDS {
        for (program, times) in [program.as_str(), THEIRS].iter().zip(&mut times) {
            let sandbox = Sandbox::new();
            let call = call(&conf, &sandbox).by(program);
            let began = Instant::now();
            call.add();
            times.push(began.elapsed());
            call.done("DEL");
        }
    }
    let [ours, theirs] = times.map(median);
    let size = std::fs::metadata(&program).expect("there").len();
    println!("ADD with static, median of {ROUNDS}: ours {ours:.1?}, theirs {theirs:.1?}; {size} bytes");
    let peak = peak(&call(&conf, &Sandbox::new()), &program);
    println!("peak resident memory of an ADD: {peak} KiB");
    assert!(peak > 0 && peak < 10 << 10, "10 MiB");
    assert!(ours <= theirs * 2, "{ours:?} and {theirs:?}");
}

/// In KiB. The kernel says it of a process that is there, so strace keeps this one for a second at its end.
fn peak(call: &Call, program: &str) -> u64 {
    let mut slow = call.clone();
    slow.under = ["/usr/bin/strace", "-qq", "-o", "/dev/null", "-e", "trace=exit_group"].map(str::to_owned).to_vec();
    slow.under.extend(["-e".to_owned(), "inject=exit_group:delay_enter=1000000".to_owned()]);
    let running = std::thread::spawn(move || slow.add());
    let program = std::fs::canonicalize(program).expect("there");
    let mut peak = 0;
    while !running.is_finished() {
        for process in std::fs::read_dir("/proc").expect("there").flatten() {
            if std::fs::read_link(process.path().join("exe")).is_ok_and(|exe| exe == program) {
                let status = std::fs::read_to_string(process.path().join("status")).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                peak = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0).max(peak);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    running.join().expect("ends");
    peak
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
