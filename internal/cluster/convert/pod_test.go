package convert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

const unschedulableStatus = `
status:
  conditions:
  - {type: PodScheduled, status: "False", reason: Unschedulable}
`

func TestPodWhole(t *testing.T) {
	pod := decode[corev1.Pod](t, `
metadata:
  name: web-1
  namespace: shop
  uid: u1
  creationTimestamp: "2026-11-20T09:00:00Z"
  labels: {app: web}
  annotations: {karpenter.sh/do-not-disrupt: "true"}
  ownerReferences:
  - {apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}
spec:
  priority: 1000
  nodeSelector:
    old.example.com/zone: use1-az1
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: beta.kubernetes.io/arch, operator: In, values: [arm64]}
        - matchExpressions:
          - {key: example.com/size, operator: Gt, values: ["4"]}
  tolerations:
  - {key: team, operator: Equal, value: shop, effect: NoSchedule}
  - {operator: Exists}
  initContainers:
  - name: setup
    resources: {requests: {cpu: 100m, memory: 1Gi}}
  - name: mesh
    restartPolicy: Always
    resources: {requests: {cpu: 50m}}
  containers:
  - name: main
    resources: {requests: {cpu: 250.5m, memory: 256Mi, nvidia.com/gpu: "1"}}
  overhead: {cpu: 10m}
`+unschedulableStatus)
	got, disposition := Pod(pod, words(), nil)
	if disposition != Pending {
		t.Fatalf("disposition is %d, want Pending", disposition)
	}
	zone := label.Requirement{Key: "topology.kubernetes.io/zone", Operator: label.In, Values: []string{"us-east-1a"}}
	want := model.PodSpec{
		UID: "u1", Namespace: "shop", Name: "web-1", Created: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
		State: model.Pending, Labels: map[string]string{"app": "web"}, Priority: 1000,
		Requests: []quantity.Amount{
			{Name: "cpu", Value: 311}, // 250.5 + 50 of the sidecar + 10 of overhead, rounded up
			{Name: "memory", Value: 1 << 30}, {Name: "nvidia.com/gpu", Value: 1}, {Name: "pods", Value: 1},
		},
		Alternatives: [][]label.Requirement{
			{zone, {Key: "kubernetes.io/arch", Operator: label.In, Values: []string{"arm64"}}},
			{zone, {Key: "example.com/size", Operator: label.Gt, Values: []string{"4"}}},
		},
		Tolerations: []model.Toleration{
			{Key: "team", Value: "shop", Effect: model.NoSchedule}, {Exists: true},
		},
		Controller:   model.Owner{Kind: "ReplicaSet", Name: "web", UID: "r1"},
		EvictionCost: 1001, ProtectedUntil: model.Forever,
		Reschedulable: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestDisposition(t *testing.T) {
	const ours = `
  managedFields:
  - manager: karpenter-nominate
    operation: Update
    subresource: status
    fieldsV1: {"f:status": {"f:nominatedNodeName": {}}}
`
	tests := []struct {
		name string
		pod  string
		want Disposition
	}{
		{"unschedulable", "metadata: {name: a}" + unschedulableStatus, Pending},
		{"the scheduler has not looked yet", "metadata: {name: a}\nstatus: {phase: Pending}", Ignore},
		{"gated", "status: {conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}", Ignore},
		{"bound", "spec: {nodeName: n}\nstatus: {phase: Running}", Bound},
		{"bound and still to start", "spec: {nodeName: n}\nstatus: {phase: Pending}", Bound},
		{"bound and leaving", "metadata: {deletionTimestamp: '2026-11-20T09:00:00Z'}\nspec: {nodeName: n}", Bound},
		{"succeeded", "spec: {nodeName: n}\nstatus: {phase: Succeeded}", Ignore},
		{"failed", "spec: {nodeName: n}\nstatus: {phase: Failed}", Ignore},
		{"pending and leaving", "metadata: {deletionTimestamp: '2026-11-20T09:00:00Z'}" + unschedulableStatus, Ignore},
		{"daemon", "metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d}]}" + unschedulableStatus, Ignore},
		{"mirror", "metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: n, uid: n}]}" + unschedulableStatus, Ignore},
		{"another group's DaemonSet", "metadata: {ownerReferences: [{apiVersion: kruise.io/v1, kind: DaemonSet, name: d, uid: d}]}" + unschedulableStatus, Pending},
		{"nominated by the scheduler", "metadata: {name: a}" + unschedulableStatus + "  nominatedNodeName: n\n", Ignore},
		{"nominated by us", "metadata:\n  name: a" + ours + unschedulableStatus + "  nominatedNodeName: n\n", Pending},
		{"our old nomination, overwritten by another", "metadata:\n  name: a" + strings.Replace(ours, "f:nominatedNodeName", "f:reason", 1) +
			unschedulableStatus + "  nominatedNodeName: n\n", Ignore},
		{"nominated under our name, not in the status",
			"metadata:\n  name: a" + strings.Replace(ours, "subresource: status", "subresource: scale", 1) +
				unschedulableStatus + "  nominatedNodeName: n\n", Ignore},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := decode[corev1.Pod](t, test.pod)
			spec, got := Pod(pod, words(), nil)
			if got != test.want {
				t.Errorf("disposition is %d, want %d", got, test.want)
			}
			Trim(pod)
			Trim(pod)
			again, trimmed := Pod(pod, words(), nil)
			if diff := cmp.Diff(spec, again); trimmed != got || diff != "" {
				t.Errorf("after Trim the disposition is %d, was %d; spec:\n%s", trimmed, got, diff)
			}
			if len(pod.ManagedFields) > 1 {
				t.Errorf("%d entries of managed fields remain", len(pod.ManagedFields))
			}
		})
	}
}

// requiring returns the spec of a pod with required terms of node affinity.
func requiring(terms string) string {
	return "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " + terms + "}}}}"
}

func TestAccepted(t *testing.T) {
	podTerm := "[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}]"
	for _, test := range []struct{ name, pod string }{
		{"plain", "spec: {nodeSelector: {team: shop}}"},
		{"well-known label of a restricted domain", "spec: {nodeSelector: {karpenter.sh/capacity-type: spot, example.com/size: '4'}}"},
		{"fields", requiring("[{matchExpressions: [{key: a, operator: Exists}]}, {matchFields: [{key: metadata.name, operator: In, values: [n]}]}]")},
		{"fields that leave nodes out", requiring("[{matchFields: [{key: metadata.name, operator: NotIn, values: [n]}]}]")},
		{"opt-out of one alternative only", requiring("[{matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}, {matchExpressions: [{key: a, operator: Exists}]}]")},
		{"labels of initialized nodes", "spec: {nodeSelector: {karpenter.sh/initialized: 'true', karpenter.sh/registered: 'true'}}"},
		{"hostname that is excluded", requiring("[{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [n]}, {key: kubernetes.io/hostname, operator: Exists}]}]")},
		{"restricted domain that is excluded", requiring("[{matchExpressions: [{key: karpenter.sh/stage, operator: DoesNotExist}]}]")},
		{"one term of several", requiring("[{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n]}]}, {}, " +
			"{matchExpressions: [{key: karpenter.sh/stage, operator: Exists}]}, {matchExpressions: [{key: a, operator: Exists}]}]")},
		{"spread", "spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}"},
		{"affinity", "spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " + podTerm + "}}}"},
		{"anti-affinity", "spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " + podTerm + "}}}"},
		{"host port", "spec: {containers: [{name: a, ports: [{containerPort: 80, hostPort: 80}]}]}"},
		{"volumes that any node has", "spec: {volumes: [{name: e, emptyDir: {}}, {name: s, secret: {secretName: s}}]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, disposition := Pod(decode[corev1.Pod](t, test.pod+unschedulableStatus), words(), nil)
			if disposition != Pending {
				t.Fatalf("disposition is %d, want Pending", disposition)
			}
			if spec.Rejected != nil {
				t.Errorf("rejected: %+v", *spec.Rejected)
			}
		})
	}
}

func TestRejected(t *testing.T) {
	const path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	tests := []struct {
		name, pod, field string
		// reason is a part of it; it must also state the correction.
		reason              string
		unsupported, silent bool
	}{
		{"restricted domain", "spec: {nodeSelector: {karpenter.sh/stage: 'one'}}", "spec.nodeSelector[karpenter.sh/stage]",
			"use a domain of your own", false, false},
		{"restricted domain of the provider", "spec: {nodeSelector: {sub.example.com/x: y}}", "spec.nodeSelector[sub.example.com/x]",
			"example.com", false, false},
		{"hostname", requiring("[{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n]}]}]"),
			path + "[0].matchExpressions[0].key", "use a label", false, false},
		{"hostname or a restricted domain", requiring("[{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n]}]}, " +
			"{matchExpressions: [{key: karpenter.sh/stage, operator: Exists}]}]"),
			path + "[0].matchExpressions[0].key", "use a label", false, false},
		{"hostname or fields", requiring("[{matchFields: [{key: metadata.name, operator: In, values: [n]}]}, " +
			"{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n]}]}]"),
			path + "[0].matchFields", "use matchExpressions", false, false},
		{"bad value", "spec: {nodeSelector: {team: '-'}}", "spec.nodeSelector[team]", "alphanumeric characters", false, false},
		{"bound that is no integer", requiring("[{matchExpressions: [{key: a, operator: Gt, values: [x]}]}]"),
			path + "[0].matchExpressions[0].values[0]", "an integer", false, false},
		{"unknown operator", requiring("[{matchExpressions: [{key: a, operator: Near, values: [x]}]}]"),
			path + "[0].matchExpressions[0].operator", "supported values", false, false},
		{"capacity type without offerings", "spec: {nodeSelector: {karpenter.sh/capacity-type: free}}",
			"spec.nodeSelector[karpenter.sh/capacity-type]", "on-demand", false, false},
		{"fields of every term", requiring("[{matchFields: [{key: metadata.name, operator: NotIn, values: [m]}, {key: metadata.name, operator: In, values: [n]}]}]"), path + "[0].matchFields", "use matchExpressions", false, false},
		{"field that nodes have not", requiring("[{matchFields: [{key: spec.unschedulable, operator: NotIn, values: [n]}]}]"),
			path + "[0].matchFields", "use matchExpressions", false, false},
		{"empty terms", requiring("[{}]"), path + "[0]", "selects no node", false, false},
		{"opt-out", requiring("[{matchExpressions: [{key: karpenter.sh/nodepool, operator: DoesNotExist}]}]"), "spec", "in no pool", false, true},
		{"volume without a claim", "spec: {volumes: [{name: c, configMap: {name: c}}, {name: v, persistentVolumeClaim: {claimName: c}}]}",
			"spec.volumes[1].persistentVolumeClaim.claimName", "create it", false, false},
		{"ephemeral volume without a claim", "spec: {volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {}}}}}]}", "spec.volumes[0].ephemeral", "does not exist yet", false, false},
		{"negative amount", "spec: {containers: [{name: a, resources: {requests: {cpu: -1}}}]}",
			"spec.containers[0].resources.requests[cpu]", "out of range", false, false},
		{"amount beyond all reason", "spec: {containers: [{name: a}, {name: b, resources: {requests: {cpu: 1e100000000}}}]}",
			"spec.containers[1].resources.requests[cpu]", "out of range", false, false},
		{"overhead beyond all reason", "spec: {overhead: {memory: 1e100000000}}", "spec.overhead[memory]", "out of range", false, false},
		{"device", "spec: {resourceClaims: [{name: gpu, resourceClaimName: g}]}", "spec.resourceClaims[0]", "not supported yet", true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec, disposition := Pod(decode[corev1.Pod](t, test.pod+unschedulableStatus), words(), nil)
			if disposition != Pending {
				t.Fatalf("disposition is %d, want Pending", disposition)
			}
			got := spec.Rejected
			if got == nil {
				t.Fatal("not rejected")
			}
			if got.Field != test.field {
				t.Errorf("rejected because of the field %q, want %q", got.Field, test.field)
			}
			if !strings.Contains(got.Reason, test.reason) {
				t.Errorf("the reason is %q, want %q in it", got.Reason, test.reason)
			}
			if got.Unsupported != test.unsupported || got.Silent != test.silent {
				t.Errorf("unsupported is %t and silent %t, want %t and %t", got.Unsupported, got.Silent, test.unsupported, test.silent)
			}
		})
	}
}

func TestBoundPods(t *testing.T) {
	const daemon = "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d, controller: true}]"
	const stateful = "ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, uid: s, controller: true}]"
	const leaving = "deletionTimestamp: '2026-11-20T09:00:00Z'"
	hostPort := "\n  containers: [{name: a, ports: [{containerPort: 80, hostPort: 80}]}]"
	device := "\n  resourceClaims: [{name: gpu, resourceClaimName: g}]"
	tests := []struct {
		name, metadata, spec            string
		reschedulable, daemon, rejected bool
	}{
		{"active", "name: a", "", true, false, false},
		{"leaving", leaving, "", false, false, false},
		{"leaving member of a StatefulSet", leaving + ", " + stateful, "", true, false, false},
		{"daemon", daemon, hostPort, false, true, false},
		{"must be placed anew and cannot", "name: a", device, true, false, true},
		{"must be placed anew and can", "name: a", hostPort, true, false, false},
		{"leaving, with no destination requested", leaving, device, false, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec, _ := Pod(decode[corev1.Pod](t, "metadata: {"+test.metadata+"}\nspec:\n  nodeName: node-1"+test.spec), words(), nil)
			if spec.State != model.Bound || spec.Node != "node-1" {
				t.Errorf("state %d on node %q, want Bound on node-1", spec.State, spec.Node)
			}
			switch {
			case spec.Reschedulable != test.reschedulable:
				t.Errorf("spec.Reschedulable is %v, want %v", spec.Reschedulable, test.reschedulable)
			case spec.Daemon != test.daemon:
				t.Errorf("spec.Daemon is %v, want %v", spec.Daemon, test.daemon)
			case (spec.Rejected != nil) != test.rejected:
				t.Errorf("(spec.Rejected != nil) is %v, want %v, rejected %v", (spec.Rejected != nil), test.rejected, spec.Rejected)
			}
		})
	}
}

func TestEvictionCost(t *testing.T) {
	tests := []struct {
		name string
		pod  string
		want int64
	}{
		{"plain", "spec: {}", 1000},
		{"deletion cost of 2^27", "metadata: {annotations: {controller.kubernetes.io/pod-deletion-cost: '134217728'}}", 2000},
		{"priority of 2^25", "spec: {priority: 33554432}", 2000},
		{"priority of -2^25 costs nothing", "spec: {priority: -33554432}", 0},
		{"just above that costs something", "spec: {priority: -33554431}", 1},
		{"just below that costs nothing", "spec: {priority: -33554433}", 0},
		{"highest", "spec: {priority: 2000001000}", 10_000},
		{"lowest", "spec: {priority: -2147483648}", -10_000},
		{"nonsense", "metadata: {annotations: {controller.kubernetes.io/pod-deletion-cost: much}}", 1000},
		{"not a number", "metadata: {annotations: {controller.kubernetes.io/pod-deletion-cost: NaN}}", 1000},
		{"beyond 32 bits", "metadata: {annotations: {controller.kubernetes.io/pod-deletion-cost: '-1e300'}}", -10_000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := evictionCost(decode[corev1.Pod](t, test.pod)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestProtectedUntil(t *testing.T) {
	const started = "\nstatus: {startTime: '2026-11-20T09:00:00Z'}"
	at := func(value string) string {
		return "metadata: {annotations: {karpenter.sh/do-not-disrupt: '" + value + "'}}"
	}
	tests := []struct {
		name, pod string
		want      time.Time
		rules     karpv1.ProtectionRules
	}{
		{name: "unset", pod: "spec: {}"},
		{name: "the old name", pod: "metadata: {annotations: {karpenter.sh/do-not-evict: 'true'}}", want: model.Forever},
		{name: "not safe to evict", pod: "metadata: {annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}}"},
		{name: "not safe to evict, honored", pod: "metadata: {annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}}",
			rules: karpv1.ProtectionRules{SafeToEvict: true}, want: model.Forever},
		{name: "true", pod: at("true") + started, want: model.Forever},
		{name: "false", pod: at("false") + started},
		{name: "four hours", pod: at("4h") + started, want: time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)},
		{name: "four hours, not started", pod: at("4h"), want: model.Forever},
		{name: "negative", pod: at("-4h") + started},
		{name: "nonsense", pod: at("True") + started},
		{name: "leaving", pod: "metadata: {deletionTimestamp: '2026-11-20T09:00:00Z', annotations: {karpenter.sh/do-not-disrupt: 'true'}}"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := protectedUntil(decode[corev1.Pod](t, test.pod), test.rules); !got.Equal(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestResize(t *testing.T) {
	pod := decode[corev1.Pod](t, `
spec:
  nodeName: n
  containers: [{name: a, resources: {requests: {cpu: 100m, memory: 1Gi}}}]
status:
  containerStatuses:
  - name: a
    image: a
    imageID: a
    ready: true
    restartCount: 0
    resources: {requests: {cpu: 400m, memory: 512Mi}}
    allocatedResources: {cpu: 300m, memory: 512Mi}
`)
	spec, _ := Pod(pod, words(), nil)
	want := []quantity.Amount{{Name: "cpu", Value: 400}, {Name: "memory", Value: 1 << 30}, {Name: "pods", Value: 1}}
	if diff := cmp.Diff(want, spec.Requests); diff != "" {
		t.Errorf("during a resize the largest request counts (-want +got):\n%s", diff)
	}
}
