use super::*;
use ipam_core::State;

fn machine(folder: &Path) -> Machine {
    booted(folder, "boot-id")
}

fn booted(folder: &Path, id: &str) -> Machine {
    let boot_id = folder.join("boot");
    fs::write(&boot_id, format!("{id}\n")).expect("writes");
    let places = Places { boot_id, state: folder.join("state") };
    Machine::open(&places, "machine-id".to_owned(), CancellationToken::new()).expect("usable")
}

fn allocation() -> Allocation {
    Allocation {
        pool: "p".to_owned(),
        address: "172.91.0.7".parse().expect("an address"),
        node: ipam_core::Node { machine_id: "machine-id".to_owned(), ..Default::default() },
        pod: ipam_core::Pod::default(),
        owner: None,
        container_id: "c-1".to_owned(),
        interface: "net1".to_owned(),
        network: String::new(),
        netns: None,
        boot_id: "boot-id".to_owned(),
        flow_id: String::new(),
        state: State::Held,
        provider: None,
        detached: false,
        release_request: None,
    }
}

#[tokio::test]
async fn a_sandbox_is_gone_by_any_of_its_signs() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = machine(folder.path());
    assert!(!here.sandbox_gone(&allocation()).await, "no sign");
    let booted = Allocation { boot_id: "another".to_owned(), ..allocation() };
    assert!(here.sandbox_gone(&booted).await);
    let unknown = Allocation { boot_id: String::new(), ..allocation() };
    assert!(!here.sandbox_gone(&unknown).await, "nobody wrote in which boot");
    let elsewhere = Allocation { node: ipam_core::Node::default(), ..booted };
    assert!(!here.sandbox_gone(&elsewhere).await, "another machine");
    let path = folder.path().join("netns").display().to_string();
    let netns = Allocation { netns: Some(Netns { path, dev: 1, inode: 1 }), ..allocation() };
    assert!(here.sandbox_gone(&netns).await);
    here.note_del("c-1").await;
    assert!(here.sandbox_gone(&allocation()).await);
    let again = machine(folder.path());
    assert!(again.sandbox_gone(&allocation()).await, "remembered over a restart");
    again.note_add("c-1").await;
    assert!(!again.sandbox_gone(&allocation()).await, "the runtime still builds on it");
}

#[tokio::test]
async fn a_namespace_is_recorded_only_if_it_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = machine(folder.path());
    let seen = sandbox::netns(Path::new("/proc/self/ns/net"));
    let told = |inode| proto::agent::Netns { path: seen.path.clone(), dev: seen.dev, inode };
    assert_eq!(here.netns(Some(told(seen.inode))).await, Some(seen.clone()));
    assert_eq!(here.netns(Some(told(seen.inode + 1))).await, None);
    let absent = proto::agent::Netns { path: "/nowhere".to_owned(), dev: 0, inode: 0 };
    assert_eq!(here.netns(Some(absent)).await, None);
    assert_eq!(here.netns(None).await, None);
}

#[tokio::test]
async fn results_are_kept_for_each_interface() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = machine(folder.path());
    let result = crate::agent::answer::tests::both_families();
    here.keep("uid", &result).await;
    assert_eq!(here.kept("uid", "net1").await, Kept::Result(Box::new(result)));
    assert_eq!(here.kept("uid", "net2").await, Kept::Nothing);
    assert_eq!(here.kept("../uid", "net1").await, Kept::Nothing);
    let state = folder.path().join("state");
    fs::write(state.join("of-another"), "").expect("writes");
    let later = booted(folder.path(), "later");
    assert_eq!(later.kept("uid", "net1").await, Kept::Nothing, "no sandbox has outlived the machine's start");
    let mut left: Vec<_> = fs::read_dir(&state).expect("there").flatten().map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["boot-later", "of-another"]);
    let here = machine(folder.path());
    fs::remove_dir_all(folder.path().join("state")).expect("removes");
    assert_eq!(here.kept("uid", "net1").await, Kept::Unreadable);
}

#[test]
fn clock_and_chance() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = machine(folder.path());
    let before = here.now();
    assert!(!before.is_zero() && here.now() >= before);
    assert_ne!(here.random(), here.random());
}

#[test]
fn a_machine_without_a_boot_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().join("empty");
    fs::write(&empty, "\n").expect("writes");
    let open = |boot_id| {
        let places = Places { boot_id, state: folder.path().join("s") };
        Machine::open(&places, "machine-id".to_owned(), CancellationToken::new())
    };
    assert!(matches!(open(empty), Err(Unusable::Empty(_))));
    assert!(matches!(open(folder.path().join("none")), Err(Unusable::Read(..))));
}
