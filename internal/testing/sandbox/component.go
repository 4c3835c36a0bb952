package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// These are the names of the components, of their executables and of their logs.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
	kubectl           = "kubectl"

	etcdPeer = "etcd-peer" // a port, not a component
)

const (
	serviceRange   = "10.96.0.0/16"
	firstServiceIP = "10.96.0.1"
)

// component describes how one program of the control plane runs.
type component struct {
	name  string
	wave  int           // components of a wave start together, after the previous wave is ready
	grace time.Duration // maximum time to stop
	args  func(plan) []string
	ready func(plan) probe
}

// plan holds the inputs of the components' arguments.
type plan struct {
	layout
	ports  map[string]int
	chosen []component
}

func (p plan) has(name string) bool {
	return slices.ContainsFunc(p.chosen, func(c component) bool { return c.name == name })
}

func (p plan) server() string { return "https://" + address(p.ports[apiserver]) }

// catalog lists the components in the order in which they start. They stop in the opposite order.
var catalog = []component{
	{name: etcd, wave: 0, grace: 5 * time.Second, args: etcdArgs, ready: func(p plan) probe {
		return probe{url: "https://" + address(p.ports[etcd]) + "/health", authority: p.pki("etcd-ca.crt"), client: p.pki("etcd-client")}
	}},
	{name: apiserver, wave: 1, grace: 10 * time.Second, args: apiserverArgs, ready: func(p plan) probe {
		return probe{url: p.server() + "/readyz", authority: p.pki("ca.crt"), client: p.pki("admin")}
	}},
	{name: controllerManager, wave: 2, grace: 5 * time.Second, args: controllerManagerArgs, ready: func(p plan) probe {
		return probe{url: "https://" + address(p.ports[controllerManager]) + "/healthz", authority: p.pki("ca.crt")}
	}},
	{name: scheduler, wave: 2, grace: 5 * time.Second, args: schedulerArgs, ready: func(p plan) probe {
		return probe{url: "https://" + address(p.ports[scheduler]) + "/readyz", authority: p.pki("ca.crt")}
	}},
	{name: kwok, wave: 2, grace: 3 * time.Second, args: kwokArgs, ready: func(p plan) probe {
		return probe{url: "http://" + address(p.ports[kwok]) + "/readyz"}
	}},
}

// choose returns the components with the given names, or all of them if there are no names.
func choose(names []string) ([]component, error) {
	if len(names) == 0 {
		return catalog, nil
	}
	var chosen []component
	for i := range catalog {
		if slices.Contains(names, catalog[i].name) {
			chosen = append(chosen, catalog[i])
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(catalog, func(c component) bool { return c.name == name }) {
			return nil, fmt.Errorf("component %q: want one of %s", name, strings.Join(componentNames(catalog), ", "))
		}
	}
	return chosen, nil
}

func componentNames(components []component) []string {
	names := make([]string, len(components))
	for i := range components {
		names[i] = components[i].name
	}
	return names
}

func etcdArgs(p plan) []string {
	client, peer := "https://"+address(p.ports[etcd]), "https://"+address(p.ports[etcdPeer])
	return []string{
		"--name=sandbox",
		"--data-dir=" + p.etcdData(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=sandbox=" + peer,
		"--client-cert-auth",
		"--trusted-ca-file=" + p.pki("etcd-ca.crt"),
		"--cert-file=" + p.pki("etcd-server.crt"),
		"--key-file=" + p.pki("etcd-server.key"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + p.pki("etcd-ca.crt"),
		"--peer-cert-file=" + p.pki("etcd-server.crt"),
		"--peer-key-file=" + p.pki("etcd-server.key"),
		// The sandbox may lose its data when the machine loses power; in return it is several times faster.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=" + strconv.Itoa(4<<30),
		"--log-level=warn",
	}
}

func apiserverArgs(p plan) []string {
	args := []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.ports[apiserver]),
		"--endpoint-reconciler-type=none", // a loopback address cannot be an endpoint
		"--etcd-servers=https://" + address(p.ports[etcd]),
		"--etcd-cafile=" + p.pki("etcd-ca.crt"),
		"--etcd-certfile=" + p.pki("etcd-client.crt"),
		"--etcd-keyfile=" + p.pki("etcd-client.key"),
		"--tls-cert-file=" + p.pki("server.crt"),
		"--tls-private-key-file=" + p.pki("server.key"),
		"--client-ca-file=" + p.pki("ca.crt"),
		// No aggregated API uses it, but the other components log errors without it.
		"--requestheader-client-ca-file=" + p.pki("ca.crt"),
		"--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.pki("service-account.pub"),
		"--service-account-signing-key-file=" + p.pki("service-account.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=RBAC",
		"--allow-privileged",
		"--profiling=false",
		"--max-requests-inflight=2000",
		"--max-mutating-requests-inflight=1000",
	}
	if !p.has(controllerManager) {
		// No controller creates service accounts, and the admission plugin rejects pods without one.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return args
}

// controlPlaneArgs returns the arguments that the controller manager and the scheduler share.
func controlPlaneArgs(p plan, name string) []string {
	return []string{
		"--kubeconfig=" + p.client(name),
		"--authentication-kubeconfig=" + p.client(name),
		"--authorization-kubeconfig=" + p.client(name),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(p.ports[name]),
		"--tls-cert-file=" + p.pki("server.crt"),
		"--tls-private-key-file=" + p.pki("server.key"),
		"--leader-elect=false",
		"--profiling=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
}

func controllerManagerArgs(p plan) []string {
	return append(controlPlaneArgs(p, controllerManager),
		"--use-service-account-credentials",
		"--service-account-private-key-file="+p.pki("service-account.key"),
		"--root-ca-file="+p.pki("ca.crt"),
		"--cluster-signing-cert-file="+p.pki("ca.crt"),
		"--cluster-signing-key-file="+p.pki("ca.key"),
		"--service-cluster-ip-range="+serviceRange,
		"--concurrent-deployment-syncs=20",
		"--concurrent-replicaset-syncs=20",
		"--concurrent-statefulset-syncs=20",
		"--concurrent-daemonset-syncs=10",
		"--concurrent-job-syncs=20",
	)
}

func schedulerArgs(p plan) []string { return controlPlaneArgs(p, scheduler) }

func kwokArgs(p plan) []string {
	return []string{
		"--kubeconfig=" + p.client(kwok),
		"--server-address=" + address(p.ports[kwok]),
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
	}
}
