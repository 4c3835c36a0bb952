package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/top"
)

const (
	awsPoolYAML = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
`
	awsClassYAML = `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: general}
spec:
  role: KarpenterNodeRole-sandbox
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: sandbox}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: sandbox}}]
  kubelet: {maxPods: 20}
`
	awsStatusYAML = `status:
  subnets: [{id: subnet-1, zone: us-east-1b, zoneID: use1-az2}, {id: subnet-2, zone: us-east-1d, zoneID: use1-az4}]
  amis: [{id: ami-1, requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]
  securityGroups: [{id: sg-1}]
  instanceProfile: nodes
  conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`
	builtIn = "on demand those built in, of us-east-1 on 2026-07-20; spot 40% of that, as an estimate of prices that only AWS has"
)

// noAWS fails the test when AWS is queried.
func noAWS(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("AWS is queried: %s %s", r.Method, r.URL)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	awsAt(t, server.URL)
}

// awsAt makes the SDK use an AWS endpoint.
func awsAt(t *testing.T, endpoint string) {
	t.Helper()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "test",
		"AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
}

// simulatedAWS starts an AWS simulation in this process and makes the SDK use it.
func simulatedAWS(t *testing.T) *awssim.Cloud {
	t.Helper()
	sim, err := awssim.New(awssim.Options{Limits: map[string]awssim.Limit{}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- sim.Serve(ctx, listener) }()
	t.Cleanup(func() { cancel(); <-served })
	awsAt(t, "http://"+listener.Addr().String())
	// A server of the same process sometimes responds before the client has noticed that its whole request is
	// written. net/http then treats this as a failure of the connection.
	t.Setenv("AWS_MAX_ATTEMPTS", "10")
	return sim
}

// onDemandPrice returns the catalog's price.
func onDemandPrice(t *testing.T, name string) float64 {
	t.Helper()
	known, found := catalog.Load().Type(name)
	if !found {
		t.Fatalf("there is no type %s", name)
	}
	return known.Prices["us-east-1"]
}

// TestSimulateAWSFiles checks that a class of a file gives what the controller would launch with it: types that its
// images run on, in the zones of its subnets, with its kubelet's settings, at the built-in prices. The capture
// contains all of it.
func TestSimulateAWSFiles(t *testing.T) {
	noAWS(t)
	folder := files(t, map[string]string{"pool.yaml": awsPoolYAML, "class.yaml": awsClassYAML + awsStatusYAML, "web.yaml": webYAML})
	capture := filepath.Join(t.TempDir(), "aws.json")
	a := simulateJSON(t, "-f", folder, "--capture", capture)
	if len(a.Nodes) != 1 || a.Pods.New != 3 {
		t.Fatalf("%+v", a)
	}
	n := a.Nodes[0]
	for _, name := range n.InstanceTypes {
		if known, _ := catalog.Load().Type(name); !slices.Contains(known.Architectures, "arm64") || !strings.Contains("cmr", name[:1]) {
			t.Errorf("%s is not a type of category c, m or r with an arm64 processor", name)
		}
	}
	switch {
	case n.Zone != "us-east-1b" && n.Zone != "us-east-1d":
		t.Errorf("the node is in zone %s, want us-east-1b or us-east-1d: %+v", n.Zone, n)
	case n.PricePerHour != onDemandPrice(t, n.InstanceType):
		t.Errorf("the node costs %v, want %v as AWS asks for %s", n.PricePerHour, onDemandPrice(t, n.InstanceType), n.InstanceType)
	case n.Allocatable["pods"] != "20":
		t.Errorf("the node holds %q pods, want 20 as its class says", n.Allocatable["pods"])
	}
	if a.PriceSource != builtIn {
		t.Errorf("the prices are %q, want %q", a.PriceSource, builtIn)
	}
	if out, err := runProgram(t, "", "replay", capture); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// The capture has offerings for any pool that names the class.
	again := simulateJSON(t, "-f", capture, "-f", files(t, map[string]string{"more.yaml": strings.ReplaceAll(webYAML, "web", "more"),
		"pool.yaml": strings.Replace(awsPoolYAML, "name: default", "name: other\n", 1)}))
	if again.Pods.New != 6 || again.PriceSource != builtIn {
		t.Errorf("%+v", again)
	}
}

// TestSimulateAWSAssumes checks that unresolved properties of a class are assumed, and that the assumption is
// printed.
func TestSimulateAWSAssumes(t *testing.T) {
	noAWS(t)
	zones := "us-east-1a, us-east-1b, us-east-1c, us-east-1d, us-east-1e, us-east-1f"
	for _, c := range []struct {
		name, class, pool, said string
		code                    string // the reason why the pod is unschedulable, "" if it is placed
	}{
		{"a class without status", awsClassYAML, awsPoolYAML,
			"EC2NodeClass general has no status, which the controller would fill in: taken to have a subnet in each of " + zones + ", and images for every type\n", ""},
		{"no class", "", awsPoolYAML, "EC2NodeClass general is not among the files: taken as one of AL2023 with a subnet in each of " + zones + ", and images for every type\n", ""},
		{"a class that cannot be read", strings.Replace(awsClassYAML, "maxPods: 20", "evictionHard: {memory.available: much}", 1), awsPoolYAML, "evictionHard", "PoolBlocked"},
		{"a pool of another cloud beside", awsClassYAML, awsPoolYAML + "---\n" + strings.NewReplacer("name: default}\nspec", "name: other}\nspec").Replace(poolYAML), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := files(t, map[string]string{"pool.yaml": c.pool, "web.yaml": webYAML})
			if c.class != "" {
				folder = files(t, map[string]string{"pool.yaml": c.pool, "web.yaml": webYAML, "class.yaml": c.class})
			}
			out, progress, err := runBoth(t, "", "simulate", "-f", folder, "-o", "json")
			var a offline.LaunchAnswer
			if decoded := json.Unmarshal([]byte(out), &a); decoded != nil {
				t.Fatalf("%v, %v\n%s", err, decoded, out)
			}
			if !strings.Contains(progress+fmt.Sprint(err)+out, c.said) {
				t.Errorf("it prints %q, %v", progress, err)
			}
			switch {
			case c.code == "":
				if a.Pods.New != 3 {
					t.Errorf("%d pods on new nodes, want 3: %v\n%s", a.Pods.New, err, out)
				}
			case len(a.Unschedulable) != 3:
				t.Errorf("%d unschedulable pods, want 3: %v\n%s", len(a.Unschedulable), err, out)
			case a.Unschedulable[0].Reasons[0].Code != c.code:
				t.Errorf("the first pod is unschedulable because of %s, want %s:\n%s", a.Unschedulable[0].Reasons[0].Code, c.code, out)
			}
		})
	}
	text, _, err := runBoth(t, "", "simulate", "-f", files(t, map[string]string{"pool.yaml": awsPoolYAML, "class.yaml": awsClassYAML, "web.yaml": webYAML}))
	if err != nil || !strings.HasSuffix(text, "\nprices: "+builtIn+"\n") {
		t.Errorf("%v\n%s", err, text)
	}
	text, _, err = runBoth(t, "", "simulate", "--disrupt", "-f", files(t, map[string]string{"pool.yaml": awsPoolYAML, "class.yaml": awsClassYAML, "web.yaml": webYAML}))
	if err != nil || !strings.HasSuffix(text, "\nprices: "+builtIn+"\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

// awsCluster is a cluster with an AWS node that is nearly empty, and a pod that needs another node.
func awsCluster(t *testing.T, class string) string {
	t.Helper()
	plain := func(text string) string { return text[strings.Index(text, "metadata:"):] } // lists do not repeat the kind
	pod := func(name, node, cpu, status string) string {
		return fmt.Sprintf(`metadata: {name: %s, namespace: default, uid: uid-%[1]s, creationTimestamp: "2026-01-01T00:00:00Z", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}
spec: {nodeName: %[2]q, containers: [{name: c, image: i, resources: {requests: {cpu: %[3]q, memory: 256Mi}}}]}
status: {%[4]s}
---
`, name, node, cpu, status)
	}
	return served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools":           plain(awsPoolYAML) + `status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}` + "\n",
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses": class,
		"/apis/karpenter.sh/v1/nodeclaims": strings.NewReplacer("karpenter.kwok.sh", "karpenter.k8s.aws", "KWOKNodeClass", "EC2NodeClass", "name: default}, requirements", "name: general}, requirements",
			`providerID: "test:///n1"`, `providerID: "aws:///us-east-1b/i-0123456789abcdef0", imageID: ami-1`).Replace(claimYAML("n1", "", "")),
		"/api/v1/nodes": `metadata: {name: n1, uid: node-uid, creationTimestamp: "2026-01-01T00:00:00Z", labels: {kubernetes.io/hostname: n1, kubernetes.io/arch: arm64, kubernetes.io/os: linux, node.kubernetes.io/instance-type: m6g.xlarge, topology.kubernetes.io/zone: us-east-1b, topology.kubernetes.io/region: us-east-1, karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: default, karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}}
spec: {providerID: "aws:///us-east-1b/i-0123456789abcdef0"}
status: {capacity: {cpu: 4, memory: "16000000000", pods: 20}, allocatable: {cpu: 3900m, memory: "15000000000", pods: 20}, conditions: [{type: Ready, status: "True"}]}
`,
		"/api/v1/pods": pod("there", "n1", "100m", "phase: Running") +
			pod("large", "", "30", `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]`),
		"/api/v1/configmaps": `metadata: {name: karpenter-instance-memory, namespace: karpenter}
data: {m6g.8xlarge_ami-1: "130000000000"}
---
metadata: {name: other, namespace: karpenter}
data: {m6g.8xlarge_ami-1: "1"}
`,
	})
}

// TestLiveAWS checks that the verbs that read a cluster know the prices of its AWS nodes and its offerings, without
// querying AWS.
func TestLiveAWS(t *testing.T) {
	noAWS(t)
	class := awsClassYAML[strings.Index(awsClassYAML, "metadata:"):] + awsStatusYAML
	kubeconfig := awsCluster(t, class)
	capture := filepath.Join(t.TempDir(), "live.json")
	a := simulateJSON(t, "--live", "--kubeconfig", kubeconfig, "--capture", capture)
	switch {
	case len(a.Nodes) != 1:
		t.Errorf("%d nodes, want 1: %+v", len(a.Nodes), a.Nodes)
	case a.Nodes[0].PricePerHour != onDemandPrice(t, a.Nodes[0].InstanceType):
		t.Errorf("the node costs %v, want %v: %+v", a.Nodes[0].PricePerHour, onDemandPrice(t, a.Nodes[0].InstanceType), a.Nodes[0])
	case a.PriceSource != builtIn:
		t.Errorf("the prices come from %q, want %q", a.PriceSource, builtIn)
	}
	if out, err := runProgram(t, "", "replay", capture); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := runProgram(t, "", "top", "--kubeconfig", kubeconfig, "-o", "json")
	var fleet top.Fleet
	switch {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case json.Unmarshal([]byte(out), &fleet) != nil:
		t.Errorf("no JSON of a fleet:\n%s", out)
	case len(fleet.Nodes) != 1:
		t.Errorf("%d nodes, want 1:\n%s", len(fleet.Nodes), out)
	case fleet.Nodes[0].PricePerHour != onDemandPrice(t, "m6g.xlarge"):
		t.Errorf("the node costs %v, want %v as m6g.xlarge does:\n%s", fleet.Nodes[0].PricePerHour, onDemandPrice(t, "m6g.xlarge"), out)
	}
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"top", "--once"}, "\nprices: " + builtIn + "\n"},
		{[]string{"explain", "pod", "large"}, "pod default/large needs a new node: "},
		{[]string{"explain", "pod", "large"}, "\nprices: " + builtIn + "\n"},
		{[]string{"explain", "node", "n1"}, "m6g.xlarge in us-east-1b as on-demand, " + fmt.Sprintf("%.4f", onDemandPrice(t, "m6g.xlarge")) + " USD per hour"},
		{[]string{"explain", "node", "n1"}, "\n  prices: " + builtIn + "\n"},
		{[]string{"explain", "pool", "default"}, "\n  prices: " + builtIn + "\n"},
		// A class that a file changes keeps the status that the controller has resolved.
		{[]string{"simulate", "--live", "-f", files(t, map[string]string{"class.yaml": awsClassYAML})}, " in us-east-1"},
	} {
		arguments := append(c.arguments, "--kubeconfig", kubeconfig)
		if c.arguments[0] == "simulate" {
			c.want = "us-east-1"
		}
		if out, err := runProgram(t, "", arguments...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%v: %v, want %q in\n%s", c.arguments, err, c.want, out)
		}
	}
	// The observed memory is used: that of the node, and, for the type that the large pod needs, that of the
	// ConfigMap.
	var document struct {
		Input struct {
			Sale struct {
				Catalogs []struct{ Types []cloud.InstanceType } `json:"catalogues"`
			}
		}
	}
	text, err := os.ReadFile(captured(t, "--live", "--kubeconfig", kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	for _, sold := range document.Input.Sale.Catalogs[0].Types {
		if want := map[string]int64{"m6g.xlarge": 16_000_000_000, "m6g.8xlarge": 130_000_000_000}[sold.Name]; want > 0 && sold.Capacity["memory"] != want {
			t.Errorf("%s has %d bytes of memory, want %d", sold.Name, sold.Capacity["memory"], want)
		}
	}
}

// TestLiveAWSNotReady checks that an unresolved class of the cluster has no offerings, and that the pods' reasons say
// so.
func TestLiveAWSNotReady(t *testing.T) {
	noAWS(t)
	class := awsClassYAML[strings.Index(awsClassYAML, "metadata:"):] +
		"status: {conditions: []}\n"
	out, err := runProgram(t, "", "explain", "pod", "large", "--kubeconfig", awsCluster(t, class))
	if err != nil || !strings.Contains(out, `pool default: spec.template: EC2NodeClass "general" is not ready: `) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLiveAWSQueried checks that types and prices come from AWS if requested, and that the error about an unreachable
// AWS names the alternative.
func TestLiveAWSQueried(t *testing.T) {
	simulatedAWS(t)
	class := awsClassYAML[strings.Index(awsClassYAML, "metadata:"):] + awsStatusYAML
	kubeconfig := awsCluster(t, class)
	a := simulateJSON(t, "--live", "--kubeconfig", kubeconfig, "--cloud-provider=aws")
	if len(a.Nodes) != 1 || !strings.HasPrefix(a.PriceSource, "on demand and spot those of AWS in us-east-1 at 20") {
		t.Errorf("%+v", a)
	}
	out, progress, err := runBoth(t, "", "simulate", "-f", files(t, map[string]string{"pool.yaml": awsPoolYAML, "web.yaml": webYAML}), "--cloud-provider=aws")
	if err != nil || !strings.Contains(out, "prices: on demand and spot those of AWS in us-east-1 at 20") {
		t.Errorf("%v %s\n%s", err, progress, out)
	}
	awsAt(t, "http://127.0.0.1:1")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	if _, err := runProgram(t, "", "top", "--once", "--kubeconfig", kubeconfig, "--cloud-provider=aws"); err == nil ||
		!strings.HasSuffix(err.Error(), "; without --cloud-provider=aws types and prices are those built in") {
		t.Errorf("%v", err)
	}
}
