//! What has to lie where on the node, from the settings, the pod's token and the node's own network.

use super::args::Args;
use super::files::{Folder, Wanted};
use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Our configuration. It sorts before `00-multus.conf`, so another Multus's, or what one left behind, is not in use.
pub(crate) const CONF: &str = "00-multus-spiderpool.conflist";
/// Beside it: what Multus talks to the API server with.
pub(crate) const OWN_FOLDER: &str = "multus-spiderpool.d";
/// The plugin's type, which is its file name in the folder of plugins.
pub(crate) const PROGRAM: &str = "multus-spiderpool";

/// Where no configuration of the node says another one. Every runtime of a supported kubelet knows it.
const CNI_VERSION: &str = "1.0.0";

/// Everything but the program.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) files: Vec<Wanted>,
}

impl Layout {
    /// The configuration comes last: what it names is there before it.
    pub(crate) fn of(args: &Args, folder: &Folder) -> anyhow::Result<Self> {
        let own = folder.path().join(OWN_FOLDER);
        let host = args.cni_conf_folder.join(OWN_FOLDER);
        let wanted =
            |name: &str, mode, content| Wanted { path: own.join(name), mode, content, others_may_change: false };
        let given = |name: &str| {
            let path = args.service_account.join(name);
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let server = server(&args.api_host, args.api_port);
        let mut files = vec![
            wanted("ca.crt", 0o644, given("ca.crt")?),
            wanted("token", 0o600, given("token")?),
            wanted("kubeconfig", 0o600, pretty(&kubeconfig(&server, &host))),
        ];
        if let Some(conflist) = conflist(args, ordinary(folder)?.as_ref()) {
            let content = pretty(&conflist);
            files.push(Wanted { path: folder.path().join(CONF), mode: 0o600, content, others_may_change: true });
        }
        Ok(Self { files })
    }
}

/// Whether the runtime takes our configuration.
pub(crate) fn usable(folder: &Folder) -> anyhow::Result<()> {
    let names = folder.names().with_context(|| format!("cannot list {}", folder.path().display()))?;
    ensure!(
        names.iter().any(|name| name == CONF),
        "this node has no network configuration yet; pods get their networks once its network plugin has written one"
    );
    let first = names.first().map_or("", String::as_str);
    ensure!(first == CONF, "{first} sorts before {CONF}: the runtime takes it, and pods get no attachments; rename it");
    Ok(())
}

/// The first configuration of the node that is not Multus's.
fn ordinary(folder: &Folder) -> anyhow::Result<Option<Value>> {
    for name in folder.names().with_context(|| format!("cannot list {}", folder.path().display()))? {
        if name == CONF {
            continue;
        }
        let read = || -> anyhow::Result<Value> { Ok(serde_json::from_slice(&folder.read(&name)?)?) };
        let conf = read().with_context(|| format!("cannot read the network configuration {name}"))?;
        if !is_multus(&conf) {
            return Ok(Some(conf));
        }
    }
    Ok(None)
}

fn plugins(conf: &Value) -> impl Iterator<Item = &Value> {
    conf["plugins"].as_array().into_iter().flatten()
}

fn is_multus(conf: &Value) -> bool {
    let is = |plugin: &Value| plugin["type"].as_str().is_some_and(|name| name.starts_with("multus"));
    is(conf) || plugins(conf).any(is)
}

/// Multus's configuration; none as long as there is nothing that it could give to pods.
fn conflist(args: &Args, ordinary: Option<&Value>) -> Option<Value> {
    let mut plugin = Map::new();
    let mut set = |key: &str, value: Value| plugin.insert(key.to_owned(), value);
    set("type", PROGRAM.into());
    set("kubeconfig", text(&args.cni_conf_folder.join(OWN_FOLDER).join("kubeconfig")));
    set("binDir", text(&args.cni_bin_folder));
    set("multusNamespace", args.multus_namespace.as_str().into());
    if args.namespace_isolation {
        set("namespaceIsolation", true.into());
        if !args.global_namespaces.is_empty() {
            set("globalNamespaces", args.global_namespaces.join(",").into());
        }
    }
    match (&args.cluster_network, ordinary) {
        (Some(name), _) => {
            set("clusterNetwork", name.as_str().into());
            // The attachment's own plugins say what they take of this.
            set("capabilities", json!({"portMappings": true, "bandwidth": true}));
        }
        (None, Some(conf)) => {
            set("capabilities", capabilities(conf).into());
            set("delegates", json!([conf]));
        }
        (None, None) => return None,
    }
    let version = ordinary.and_then(|conf| conf["cniVersion"].as_str()).unwrap_or(CNI_VERSION);
    Some(json!({"cniVersion": version, "name": "multus-cni-network", "plugins": [plugin]}))
}

/// Runtimes hand a capability's values only to plugins that have it.
fn capabilities(conf: &Value) -> Map<String, Value> {
    let all = std::iter::once(conf).chain(plugins(conf)).filter_map(|plugin| plugin["capabilities"].as_object());
    let on = all.flatten().filter(|(_, on)| on.as_bool() == Some(true));
    on.map(|(name, on)| (name.clone(), on.clone())).collect()
}

/// Names files: a renewed token is in use with the next call of Multus.
fn kubeconfig(server: &str, folder: &Path) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "local",
            "cluster": {"server": server, "certificate-authority": text(&folder.join("ca.crt"))},
        }],
        "users": [{"name": "multus", "user": {"tokenFile": text(&folder.join("token"))}}],
        "contexts": [{"name": "multus", "context": {"cluster": "local", "user": "multus"}}],
        "current-context": "multus",
    })
}

fn server(host: &str, port: u16) -> String {
    if host.contains(':') { format!("https://[{host}]:{port}") } else { format!("https://{host}:{port}") }
}

fn text(path: &Path) -> Value {
    path.display().to_string().into()
}

fn pretty(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::fs;
    use tempfile::TempDir;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// A node with these configurations, and the settings.
    fn node(confs: &[(&str, &str)], more: &[&str]) -> (TempDir, Args) {
        let host = tempfile::tempdir().expect("a folder");
        let account = host.path().join("account");
        for folder in ["account", "etc/cni/net.d"] {
            fs::create_dir_all(host.path().join(folder)).expect("writable");
        }
        for (name, content) in [("token", "secret"), ("ca.crt", "PEM")] {
            fs::write(account.join(name), content).expect("writable");
        }
        for (name, content) in confs {
            fs::write(host.path().join("etc/cni/net.d").join(name), content).expect("writable");
        }
        let [host_text, account] = [host.path(), &account].map(|path| path.display().to_string());
        let fixed = ["x", "--api-host=10.96.0.1", "--host", &host_text, "--service-account", &account];
        let line = Line::try_parse_from(fixed.iter().chain(more)).unwrap_or_else(|error| panic!("{error}"));
        (host, line.args)
    }

    fn folder(args: &Args) -> Folder {
        Folder::new(args.in_host(&args.cni_conf_folder))
    }

    fn written(args: &Args) -> Option<Value> {
        let layout = Layout::of(args, &folder(args)).expect("readable");
        let conf = layout.files.iter().find(|file| file.path.ends_with(CONF))?;
        assert_eq!(layout.files.len(), 4);
        Some(serde_json::from_slice(&conf.content).expect("JSON"))
    }

    const BRIDGE: &str = r#"{"cniVersion": "0.4.0", "name": "default", "plugins": [
        {"type": "bridge"}, {"type": "portmap", "capabilities": {"portMappings": true, "aliases": false}}]}"#;

    #[test]
    fn the_nodes_own_network_is_handed_to_multus_as_it_is() {
        let (_node, args) = node(&[("10-bridge.conflist", BRIDGE), ("20-other.conf", r#"{"type": "x"}"#)], &[]);
        let conf = written(&args).expect("a configuration");
        let bridge: Value = serde_json::from_str(BRIDGE).expect("JSON");
        assert_eq!(
            conf,
            json!({"cniVersion": "0.4.0", "name": "multus-cni-network", "plugins": [{
                "type": "multus-spiderpool",
                "kubeconfig": "/etc/cni/net.d/multus-spiderpool.d/kubeconfig",
                "binDir": "/opt/cni/bin",
                "multusNamespace": "kube-system",
                "capabilities": {"portMappings": true},
                "delegates": [bridge],
            }]})
        );
    }

    #[test]
    fn no_multus_is_handed_to_multus() {
        let list =
            r#"{"cniVersion": "1.0.0", "name": "m", "plugins": [{"type": "multus-spiderpool"}, {"type": "mesh"}]}"#;
        let confs =
            [(CONF, list), ("00-multus.conf", r#"{"type": "multus"}"#), ("01.conf", r#"{"type": "multus-shim"}"#)];
        let (_node, args) = node(&confs, &[]);
        assert_eq!(written(&args), None, "nothing to give to pods");
        let (_node, args) = node(&[&confs[..], &[("99-plain.conf", r#"{"type": "plain"}"#)]].concat(), &[]);
        assert_eq!(written(&args).expect("a configuration")["plugins"][0]["delegates"], json!([{"type": "plain"}]));
    }

    #[test]
    fn the_cluster_network_comes_instead_and_needs_no_other() {
        let (_node, args) = node(&[], &["--cluster-network=net", "--multus-namespace=networks"]);
        let conf = written(&args).expect("a configuration");
        let plugin = &conf["plugins"][0];
        assert_eq!((&plugin["clusterNetwork"], &plugin["multusNamespace"]), (&"net".into(), &"networks".into()));
        assert_eq!((&plugin["delegates"], &conf["cniVersion"]), (&Value::Null, &"1.0.0".into()));
    }

    #[test]
    fn isolation_is_as_the_values_say() {
        let plugin = |more: &[&str]| {
            let (_node, args) = node(&[("10-bridge.conflist", BRIDGE)], more);
            written(&args).expect("a configuration")["plugins"][0].take()
        };
        assert_eq!(plugin(&[])["namespaceIsolation"], Value::Null);
        let isolated = plugin(&["--namespace-isolation"]);
        assert_eq!((&isolated["namespaceIsolation"], &isolated["globalNamespaces"]), (&true.into(), &Value::Null));
        let global = plugin(&["--namespace-isolation", "--global-namespaces=a,b"]);
        assert_eq!(global["globalNamespaces"], "a,b");
    }

    #[test]
    fn what_stands_before_ours_or_cannot_be_read_is_named() {
        let (node, args) = node(&[("00-aaa.conf", r#"{"type": "x"}"#), (CONF, "{}")], &[]);
        let usable = || usable(&folder(&args)).map_err(|error| error.to_string());
        assert!(usable().is_err_and(|error| error.starts_with("00-aaa.conf sorts before")));
        fs::remove_file(node.path().join("etc/cni/net.d/00-aaa.conf")).expect("there");
        assert_eq!(usable(), Ok(()));
        fs::write(node.path().join("etc/cni/net.d/05-half.conflist"), "{").expect("writable");
        let error = Layout::of(&args, &folder(&args)).map_err(|error| error.to_string()).expect_err("half a file");
        assert_eq!(error, "cannot read the network configuration 05-half.conflist");
        fs::remove_file(node.path().join("etc/cni/net.d").join(CONF)).expect("there");
        assert!(usable().is_err_and(|error| error.starts_with("this node has no network configuration yet")));
    }

    #[test]
    fn an_api_server_may_have_an_address_of_version_6() {
        assert_eq!(server("fd00::1", 6443), "https://[fd00::1]:6443");
        assert_eq!(server("10.96.0.1", 443), "https://10.96.0.1:443");
        let kubeconfig = kubeconfig("https://x", Path::new("/etc/cni/net.d/multus-spiderpool.d"));
        assert_eq!(kubeconfig["users"][0]["user"]["tokenFile"], "/etc/cni/net.d/multus-spiderpool.d/token");
    }
}
