// Command karpenter-sandbox runs Kubernetes on this machine, to try the controller and to develop it. It is for
// developers: no image contains it.
//
//	up, down, status      a control plane with simulated kubelets, in the background (internal/testing/sandbox)
//	kubeconfig, assets    how to reach it, and the executables that it runs
//	aws-sim               a simulated AWS as a server (internal/testing/awssim)
//	demo                  a control plane, the controller, pods that come and go, and a report (demo)
//
// It is a module of its own because the product's module must not depend on it; it depends on that module. Kubernetes
// itself is not linked: `up` builds and runs the command of module sandbox/kubernetes.
//
// Exit codes are those of the other programs: 0 for success, 2 for invalid input or usage, 1 if the work failed or the
// answer is negative.
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/sandbox/demo"
)

// release is set by the linker: -ldflags "-X main.release=v1.2.3".
var release string

// service is a Service of a sandbox, in kube-system, that points to this machine. Through it the API server reaches the
// conversion webhook of a controller that runs beside the sandbox (--karpenter-service).
const service = "karpenter"

func main() {
	os.Exit(cli.Run(context.Background(), newRoot()))
}

func newRoot() *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:     "karpenter-sandbox",
		Short:   "Runs a real Kubernetes control plane on this machine, with simulated kubelets",
		Version: cli.Version(release),
		Long: `Run etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok's
simulated kubelets on the loopback address of this machine.

The data directory identifies the sandbox: two directories are two sandboxes. It
holds certificates, ports, etcd's data, the kubeconfig and the logs
(logs/<component>.log); "down" keeps it, and the next "up" goes on from there. A
Node with the annotation kwok.x-k8s.io/node=fake becomes Ready and runs pods.`,
	}, cli.NoTerminal)
	root.AddCommand(newUp(), newDown(), newStatus(), newKubeconfig(), newAssets(), newPin(), newSupervise(), newAWSSim(),
		demo.NewCommand(filepath.Join(filepath.Dir(defaultDataDir()), "demo"), service))
	return root
}
