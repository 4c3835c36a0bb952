// Command kubernetes-components is a Kubernetes control plane in one executable.
//
//	kubernetes-components ──argv[0] or first argument──┬─ etcd
//	                                                   ├─ kube-apiserver
//	                                                   ├─ kube-scheduler
//	                                                   ├─ kube-controller-manager
//	                                                   ├─ kubectl
//	                                                   └─ kwok   (simulated kubelets)
//
// The components share most of their code. Six separate executables would take six times as long to link and have
// about five times the size. The component is the base name of argv[0], so that a folder of links (etcd,
// kube-apiserver, kubectl, ...) has the layout of the release archives, for example for KUBEBUILDER_ASSETS. Called
// under any other name, the first argument names the component.
//
// Every component but kwok runs its own upstream main function unchanged: same flags, same exit codes. kwok has its
// own main function here (kwok.go), because upstream's kwok command and component-base both register the global flag
// "version".
//
// With the build tag nokubernetes the executable has etcd and kwok alone: the sandbox builds it so, in a fraction of the
// time, where it has downloaded the other components.
//
// This is a separate module so that k8s.io/kubernetes and its dependencies stay out of the go.mod of the product and of
// karpenter-sandbox, and so that a change of those does not build Kubernetes again. It depends neither on Karpenter nor
// on data directories nor on how components are connected: the product's package internal/testing/sandbox does that,
// which builds this command and runs it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	_ "time/tzdata" // CronJob time zones, on machines without a zone database

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/version"
)

// component is one of the programs in this executable. run reads its arguments from os.Args and returns its exit
// code.
type component struct {
	name string
	run  func() int
}

var components = append([]component{
	{"etcd", runEtcd},
	{"kwok", runKwok},
}, released...)

func main() {
	chosen, args := choose(os.Args)
	if chosen == nil {
		fmt.Fprintln(os.Stderr, usage())
		os.Exit(2)
	}
	os.Args = args
	os.Exit(chosen.run())
}

// choose returns the component that args select, and the arguments that the component expects (its name first); nil
// if args select none.
func choose(args []string) (*component, []string) {
	if c := find(strings.TrimSuffix(filepath.Base(args[0]), ".exe")); c != nil {
		return c, args
	}
	if len(args) > 1 {
		if c := find(args[1]); c != nil {
			return c, args[1:]
		}
	}
	return nil, nil
}

func find(name string) *component {
	for i := range components {
		if components[i].name == name {
			return &components[i]
		}
	}
	return nil
}

func usage() string {
	names := make([]string, len(components))
	for i := range components {
		names[i] = components[i].name
	}
	return fmt.Sprintf("kubernetes-components: Kubernetes %s in one executable\nusage: kubernetes-components %s [flags]\n"+
		"or call it by a link named like the component", version.Get().GitVersion, strings.Join(names, "|"))
}

func runEtcd() int {
	etcdmain.Main(os.Args) // exits by itself when it fails
	return 0
}
