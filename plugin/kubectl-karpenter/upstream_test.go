package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// upstreamPool is a NodePool as the API server holds it where upstream's controller (1.x) runs: its hash, its conditions
// and the resources of its nodes are upstream's.
const upstreamPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
  uid: 5c0e7cbe-3a4c-4cf8-8f0e-0d4ac50d1f01
  generation: 1
  creationTimestamp: "2026-05-01T08:00:00Z"
  annotations: {karpenter.sh/nodepool-hash: "12526152133451586262", karpenter.sh/nodepool-hash-version: v3}
spec:
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m, budgets: [{nodes: "10%"}]}
  limits: {cpu: 1k}
  template:
    metadata: {labels: {team: shop}}
    spec:
      expireAfter: Never
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
status:
  nodeClassObservedGeneration: 1
  resources: {cpu: "64", memory: 256Gi, pods: "464", nodes: "8", ephemeral-storage: 160Gi}
  conditions:
  - {type: ValidationSucceeded, status: "True", reason: ValidationSucceeded, message: "", lastTransitionTime: "2026-05-01T08:00:01Z", observedGeneration: 1}
  - {type: NodeClassReady, status: "True", reason: NodeClassReady, message: "", lastTransitionTime: "2026-05-01T08:00:01Z", observedGeneration: 1}
  - {type: NodeRegistrationHealthy, status: "True", reason: NodeRegistrationHealthy, message: "", lastTransitionTime: "2026-05-01T08:05:00Z", observedGeneration: 1}
  - {type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-05-01T08:00:01Z", observedGeneration: 1}
`

// upstreamClass is the class of the pool, likewise.
const upstreamClass = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
  uid: 5c0e7cbe-3a4c-4cf8-8f0e-0d4ac50d1f02
  generation: 1
  creationTimestamp: "2026-05-01T08:00:00Z"
  finalizers: [karpenter.k8s.aws/termination]
  annotations: {karpenter.k8s.aws/ec2nodeclass-hash: "6587732100211953107", karpenter.k8s.aws/ec2nodeclass-hash-version: v4}
spec:
  role: KarpenterNodeRole-shop
  amiSelectorTerms: [{alias: al2023@v20260801}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: shop}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: shop}}]
status:
  amis: [{id: ami-0aaaaaaaaaaaaaaaa, name: al2023-x86, requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]},
    {id: ami-0bbbbbbbbbbbbbbbb, name: al2023-arm, requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]
  subnets: [{id: subnet-0a, zone: us-east-1a, zoneID: use1-az1}, {id: subnet-0b, zone: us-east-1b, zoneID: use1-az2}]
  securityGroups: [{id: sg-0a, name: nodes}]
  instanceProfile: shop_1234
  conditions:
  - {type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-05-01T08:00:01Z", observedGeneration: 1}
`

// upstreamNode returns a NodeClaim and its Node with the labels, annotations, finalizers and conditions that upstream
// writes.
func upstreamNode(name, kind, zone string, cpu, memory int) (claim, node string) {
	family, size, _ := strings.Cut(kind, ".")
	labels := fmt.Sprintf(`team: shop, karpenter.sh/nodepool: default, karpenter.sh/capacity-type: on-demand, `+
		`node.kubernetes.io/instance-type: %s, `+
		`topology.kubernetes.io/zone: %s, topology.kubernetes.io/region: us-east-1, kubernetes.io/arch: amd64, kubernetes.io/os: linux, `+
		`karpenter.k8s.aws/instance-family: %s, karpenter.k8s.aws/instance-size: %s, karpenter.k8s.aws/instance-category: %s, `+
		`karpenter.k8s.aws/instance-cpu: "%d", karpenter.k8s.aws/ec2nodeclass: default`, kind, zone, family, size, family[:1], cpu)
	annotations := `karpenter.sh/nodepool-hash: "12526152133451586262", karpenter.sh/nodepool-hash-version: v3, ` +
		`karpenter.k8s.aws/ec2nodeclass-hash: "6587732100211953107", karpenter.k8s.aws/ec2nodeclass-hash-version: v4`
	room := fmt.Sprintf(`capacity: {cpu: "%d", memory: %dGi, pods: "58", ephemeral-storage: 20Gi}, allocatable: {cpu: %dm, memory: %dMi, `+
		`pods: "58", ephemeral-storage: 17Gi}`,
		cpu, memory, cpu*1000-90, memory*1024-1600)
	condition := func(names ...string) string {
		var list []string
		for _, name := range names {
			list = append(list, fmt.Sprintf(`{type: %s, status: "True", reason: %s, message: "", lastTransitionTime: "2026-06-01T09:01:00Z"}`,
				name, name))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	id := "aws:///" + zone + "/i-0" + strings.Repeat(name[len(name)-1:], 16)
	claim = fmt.Sprintf(`apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: %s, uid: claim-%s, creationTimestamp: "2026-06-01T09:00:00Z", generateName: default-, finalizers: [karpenter.sh/termination], labels: {%s}, annotations: {%s},
  ownerReferences: [{apiVersion: karpenter.sh/v1, kind: NodePool, name: default, uid: 5c0e7cbe-3a4c-4cf8-8f0e-0d4ac50d1f01, blockOwnerDeletion: true}]}
spec: {expireAfter: Never, nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default},
  requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}, {key: karpenter.sh/nodepool, operator: In, values: [default]}], resources: {requests: {cpu: "2", pods: "6"}}}
status: {providerID: %q, nodeName: ip-%s.ec2.internal, imageID: ami-0aaaaaaaaaaaaaaaa, %s, conditions: %s}
---
`, name, name, labels, annotations, id, name, room, condition("Launched", "Registered", "Initialized", "Consolidatable", "Ready"))
	node = fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: ip-%s.ec2.internal, uid: node-%s, creationTimestamp: "2026-06-01T09:00:30Z", finalizers: [karpenter.sh/termination], annotations: {%s},
  labels: {%s, karpenter.sh/registered: "true", karpenter.sh/initialized: "true", kubernetes.io/hostname: ip-%s.ec2.internal, k8s.io/cloud-provider-aws: abc, failure-domain.beta.kubernetes.io/zone: %s}}
spec: {providerID: %q}
status: {%s, conditions: %s}
---
`, name, name, annotations, labels, name, zone, id, room, condition("Ready"))
	return claim, node
}

// upstreamPod returns a pod of a Deployment, on a node, or pending for the reason that kube-scheduler gives.
func upstreamPod(app string, number int, node, cpu, memory, more string) string {
	status := `phase: Running, conditions: [{type: Ready, status: "True"}, {type: PodScheduled, status: "True"}]`
	if node == "" {
		status = `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/8 nodes are available"}]`
	} else {
		node = "nodeName: ip-" + node + ".ec2.internal, "
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s-7d9c-%[2]d, namespace: shop, uid: pod-%[1]s-%[2]d, creationTimestamp: "2026-06-01T10:00:00Z", labels: {app: %[1]s},
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %[1]s-7d9c, uid: rs-%[1]s, controller: true}]}
spec: {%[3]s%[6]scontainers: [{name: c, image: i, resources: {requests: {cpu: %[4]s, memory: %[5]s}}}]}
status: {%[7]s}
---
`, app, number, node, cpu, memory, more, status)
}

// upstreamCluster serves a cluster of eight half used nodes that upstream's controller runs.
func upstreamCluster(t *testing.T) (kubeconfig string) {
	t.Helper()
	claims, nodes, pods := "", "", ""
	for i, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1a", "us-east-1b", "us-east-1a", "us-east-1b", "us-east-1a",
		"us-east-1b"} {
		name := fmt.Sprintf("default-%c", 'a'+i)
		claim, node := upstreamNode(name, "m5.2xlarge", zone, 8, 32)
		claims, nodes = claims+claim, nodes+node
		pods += upstreamPod("web", i, name, "1500m", "4Gi", "") + upstreamPod("cart", i, name, "500m", "2Gi", "")
	}
	pods += upstreamPod("ledger", 0, "default-h", "500m", "2Gi", "")
	for i := range 3 {
		pods += upstreamPod("search", i, "", "2", "4Gi", "nodeSelector: {kubernetes.io/arch: arm64}, ")
	}
	lists := map[string]string{
		"/apis/karpenter.sh/v1/nodepools":                         upstreamPool,
		"/apis/karpenter.sh/v1/nodeclaims":                        claims,
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses":               upstreamClass,
		"/apis/apps/v1/deployments":                               upstreamDeployment,
		"/apis/coordination.k8s.io/v1/leases":                     upstreamLease,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": upstreamDefinitions(t),
		"/api/v1/nodes":                                           nodes,
		"/api/v1/pods":                                            pods,
		"/apis/policy/v1/poddisruptionbudgets": `apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: ledger, namespace: shop, generation: 1}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: ledger}}}
status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}
`,
	}
	upstreamDiscovery(t, lists)
	return served(t, lists)
}

// upstreamDeployment is the controller, as upstream's chart installs it.
const upstreamDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  {name: karpenter, namespace: kube-system, uid: deploy-1, labels: {app.kubernetes.io/name: karpenter}}
spec:
  replicas: 2
  selector: {matchLabels: {app.kubernetes.io/name: karpenter}}
  template:
    metadata: {labels: {app.kubernetes.io/name: karpenter}}
    spec:
      serviceAccountName: karpenter
      containers: [{name: controller, image: "public.ecr.aws/karpenter/controller:1.5.0", env: [{name: CLUSTER_NAME, value: shop}]}]
status: {replicas: 2, readyReplicas: 2, availableReplicas: 2, observedGeneration: 1}
`

// upstreamLease is the Lease of upstream's leader.
const upstreamLease = `apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: karpenter-leader-election, namespace: kube-system, uid: lease-1}
spec: {holderIdentity: karpenter-5d9c_1, leaseDurationSeconds: 15, renewTime: "2026-06-01T12:00:00.000000Z"}
`

// TestOnUpstream asks a cluster that upstream's controller runs the three questions of README.md, which shows the answers.
func TestOnUpstream(t *testing.T) {
	kubeconfig := upstreamCluster(t)
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(home, "../../README.md")
	t.Chdir(files(t, map[string]string{"pool.yaml": upstreamPool,
		"new-pool.yaml": strings.Replace(upstreamPool, "values: [amd64]", "values: [amd64, arm64]", 1)}))
	ask := func(line string) string {
		root := newRootCommand()
		var out, progress bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&progress)
		root.SetArgs(append(strings.Fields(line), "--kubeconfig", kubeconfig))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, progress.String())
		}
		return "$ kubectl karpenter " + line + "\n" + out.String()
	}
	for i, q := range []struct{ line, want string }{
		{"explain pods -n shop", "559 types would fit if label kubernetes.io/arch were not required"},
		{"explain pool default", "PodDisruptionBudget shop/ledger allows no eviction"},
		{"simulate --live --diff pool.yaml new-pool.yaml", "3 pods become schedulable, 0 pods become unschedulable"},
	} {
		text := ask(q.line)
		if !strings.Contains(text, q.want) {
			t.Errorf("want %q in\n%s", q.want, text)
		}
		held(t, readme, fmt.Sprintf("<!-- answer %d: TestOnUpstream -->\n```text\n", i+1), "```\n<!-- end -->", text)
	}
	for _, line := range []string{"top --once", "explain node", "simulate --live --disrupt --until-stable"} {
		if text := ask(line); !strings.Contains(text, "ip-default-h") {
			t.Errorf("%s does not name a node:\n%s", line, text)
		}
	}
}

// TestDiffOfTheSamePool: a file with the pool that a cluster has, as users keep it (without what the API server and the
// controller add), changes nothing.
func TestDiffOfTheSamePool(t *testing.T) {
	pool, _, _ := strings.Cut(upstreamPool, "\nstatus:")
	pool = regexp.MustCompile(`(?m)^  (uid|resourceVersion|generation|creationTimestamp): .*\n`).ReplaceAllString(pool, "")
	folder := files(t, map[string]string{"pool.yaml": pool + "\n"})
	out, err := simulate(t, "", "--kubeconfig", upstreamCluster(t), "--live", "--diff", "-f", filepath.Join(folder, "pool.yaml"))
	if err != nil || !strings.HasPrefix(out,
		"Nothing changes: no field that decides changed (594.22 USD a month at rest)\n") {
		t.Errorf("%v\n%s\n%s", err, out, pool)
	}
}
