// multus-grammar reads a JSON list of annotation values from standard input
// and prints what Multus makes of each, for a test that compares readers.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/k8sclient"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/logging"
)

type reading struct {
	Networks [][3]string `json:"networks"`
	Refused  bool        `json:"refused"`
	Crashed  bool        `json:"crashed"`
}

func read(annotation string) (r reading) {
	defer func() {
		if recover() != nil {
			r = reading{Crashed: true}
		}
	}()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace:   "team-a",
		Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": annotation},
	}}
	networks, err := k8sclient.GetPodNetwork(pod)
	if err != nil {
		return reading{Refused: true}
	}
	for _, n := range networks {
		r.Networks = append(r.Networks, [3]string{n.Namespace, n.Name, n.InterfaceRequest})
	}
	return r
}

func main() {
	logging.SetLogStderr(false)
	var corpus []string
	if err := json.NewDecoder(os.Stdin).Decode(&corpus); err != nil {
		fmt.Fprintln(os.Stderr, "no JSON list of texts:", err)
		os.Exit(1)
	}
	readings := make([]reading, 0, len(corpus))
	for _, annotation := range corpus {
		readings = append(readings, read(annotation))
	}
	if err := json.NewEncoder(os.Stdout).Encode(readings); err != nil {
		os.Exit(1)
	}
}
