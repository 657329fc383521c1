//! What a kubelet does with a pod's sandboxes: a failed one is taken down, and another one is made.

use std::path::Path;
use std::time::Duration;
use tests::plugin::{NoInterface, Plugin, Sandbox, address};
use tests::wait;

/// Until a pod must have its address, whatever happens on the way.
const LIMIT: Duration = Duration::from_mins(3);
/// As a plugin does that is not told otherwise.
pub const BUDGET: Duration = Duration::from_secs(100);

/// The address of the pod, once one of its sandboxes got one; that sandbox is in `sandbox` then. `failed` is told of every
/// answer without an address.
pub async fn started(socket: &Path, sandbox: &mut Sandbox, mut failed: impl FnMut(NoInterface)) -> String {
    let name = sandbox.pod.clone();
    let mut tries = 0;
    wait::until(format!("an address of {name}"), LIMIT, async || {
        tries += 1;
        sandbox.container = format!("{name}-{tries}");
        let plugin = Plugin::dial(socket).await.map_err(|error| error.to_string())?;
        match plugin.add(sandbox, BUDGET).await {
            Ok(interface) => Ok(address(&interface)),
            Err(why) => {
                let text = format!("{why:?}");
                failed(why);
                let _ = plugin.del(sandbox).await;
                Err(text)
            }
        }
    })
    .await
}

/// A pod that is gone has its sandbox taken down.
pub async fn stopped(socket: &Path, sandbox: &Sandbox) {
    wait::until(format!("a DEL of {}", sandbox.pod), LIMIT, async || {
        let plugin = Plugin::dial(socket).await.map_err(|error| error.to_string())?;
        plugin.del(sandbox).await.map_err(|status| status.to_string())
    })
    .await;
}
