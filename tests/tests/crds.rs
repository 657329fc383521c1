//! The definitions in the chart are those of the types.

use tests::process::root;

/// `make golden` writes them anew.
#[test]
fn the_chart_installs_what_the_types_say() {
    let folder = root().join("charts/spiderpool/files/crds");
    let anew = std::env::var_os("INSTA_UPDATE").is_some();
    let mut wanted = Vec::new();
    for definition in k8s_api::crd::definitions() {
        let name = format!("{}.yaml", definition.metadata.name.clone().expect("a name"));
        let text = serde_saphyr::to_string(&definition).expect("YAML");
        let path = folder.join(&name);
        if anew {
            std::fs::write(&path, &text).expect("writable");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, text, "{name} is not up to date: run `make golden` and review the difference");
        wanted.push(name);
    }
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .expect("readable")
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect();
    found.sort();
    assert_eq!(found, wanted, "nothing else lies there");
}
