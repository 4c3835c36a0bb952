package offline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	anyPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: p}
spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: d}, requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}}
`
	diskClass = `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s}
provisioner: disk.example.com
`
)

// podWith returns a pod with further fields of its spec.
func podWith(name, spec string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: app}\nspec: {%s, containers: [{name: c, image: "+
		"i, resources: {requests: {cpu: 1}}}]}\n", name, spec)
}

func claimText(name, spec string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s, namespace: app}\nspec: {accessModes: "+
		"[ReadWriteOnce], resources: {requests: {storage: 5Gi}}, %s}\n", name, spec)
}

// volumeText returns a volume of a zone.
func volumeText(name, zone, spec string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: %s}\nspec: {accessModes: [ReadWriteOnce], "+
		"nodeAffinity: {required: {nodeSelectorTerms: "+
		"[{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [%s]}]}]}}, hostPath: {path: /d}, %s}\n", name, zone, spec)
}

// answered returns the input and the answer for manifests. whole is as if a cluster was read.
func answered(t *testing.T, text string, whole bool) (*Manifests, *LaunchAnswer) {
	t.Helper()
	o, err := newManifests()
	if err != nil {
		t.Fatal(err)
	}
	o.whole = whole
	o.readPath("-", strings.NewReader(text))
	if err := o.typesOn(""); err != nil {
		t.Fatal(err)
	}
	p := DefaultPolicy()
	err = o.complete(time.Unix(0, 0), p)
	if err != nil || len(o.Problems) > 0 {
		t.Fatal(err, o.Problems)
	}
	return o, o.Decide(&p, 1).Answer()
}

// zonesOf returns the zone of each pod that gets a node, and the reason of each other pod.
func zonesOf(a *LaunchAnswer) map[string]string {
	of := map[string]string{}
	for _, n := range a.Nodes {
		for _, pod := range n.Pods {
			of[strings.TrimPrefix(pod, "app/")] = strings.TrimPrefix(n.Zone, "test-zone-")
		}
	}
	for _, u := range a.Unschedulable {
		of[strings.TrimPrefix(u.Pod, "app/")] = u.Reasons[0].Message
	}
	return of
}

const disk = "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"

// TestVolumesBesideTheirClaims checks that claims of files get the volumes that are written beside them, as from the
// volume controller: by their names, or by class, size and access mode.
func TestVolumesBesideTheirClaims(t *testing.T) {
	pod := podWith("web", disk)
	manual := "storageClassName: manual, capacity: {storage: 5Gi}"
	for name, c := range map[string]struct{ text, zone string }{
		"the claim names the volume": {pod + claimText("data", `storageClassName: "", volumeName: v`) + volumeText("v", "test-zone-b",
			"capacity: {storage: 5Gi}"), "b"},
		"the volume names the claim": {pod + claimText("data", `storageClassName: ""`) + volumeText("v", "test-zone-c",
			"capacity: {storage: 5Gi}, claimRef: {namespace: app, name: data, uid: old}"), "c"},
		"a class without an object": {pod + claimText("data", "storageClassName: manual") + volumeText("v", "test-zone-b", manual), "b"},
		"an immediate class": {pod + claimText("data", "storageClassName: now") + fmt.Sprintf(diskClass,
			"now") + volumeText("v", "test-zone-b", "storageClassName: now, capacity: {storage: 5Gi}"), "b"},
		"a class without a provisioner": {pod + claimText("data", "storageClassName: local") + strings.Replace(fmt.Sprintf(diskClass,
			"local"), "disk.example.com", "kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer", 1) + volumeText("v",
			"test-zone-b", "storageClassName: local, capacity: {storage: 5Gi}"), "b"},
		"the smallest that is large": {pod + claimText("data", "storageClassName: manual") + volumeText("small", "test-zone-a",
			"storageClassName: manual, capacity: {storage: 4Gi}") + volumeText("v", "test-zone-d",
			"storageClassName: manual, capacity: {storage: 50Gi}") + volumeText("w", "test-zone-b", manual), "b"},
		"not one that names another": {pod + claimText("data", "storageClassName: manual") + volumeText("v", "test-zone-d",
			manual+", claimRef: {namespace: app, name: other}") + volumeText("w", "test-zone-b",
			"storageClassName: manual, capacity: {storage: 9Gi}"), "b"},
		"the claims of a StatefulSet too": {statefulSetText + volumeText("v", "test-zone-b",
			manual+", claimRef: {namespace: app, name: data-web-0}"), "b"},
		"a mismatch is no volume of it": {pod + claimText("data", `storageClassName: "", volumeName: v`) + volumeText("v", "test-zone-b",
			"capacity: {storage: 1Gi}"), `spec.volumes[0]: claim "data" names volume "v" and is not bound to it yet`},
		"a volume on demand of the class": {pod + claimText("data", "storageClassName: late") + strings.Replace(fmt.Sprintf(diskClass,
			"late"), "disk.example.com", "disk.example.com\nvolumeBindingMode: WaitForFirstConsumer\n"+
			"allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [test-zone-c]}]}]", 1) + volumeText("v",
			"test-zone-b", "storageClassName: late, capacity: {storage: 5Gi}"), "c"},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := answered(t, anyPool+c.text, false)
			for pod, zone := range zonesOf(a) {
				if strings.HasPrefix(pod, "web") && zone != c.zone {
					t.Errorf("pod %s: %s, want %s", pod, zone, c.zone)
				}
			}
			if a.Pods.Total != 1 || len(w.missing) > 0 {
				t.Errorf("%d pods, missing %v, want one pod and nothing missing", a.Pods.Total, w.missing)
			}
		})
	}
}

const statefulSetText = `---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: app}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: manual, resources: {requests: {storage: 5Gi}}}}]
`

// TestMissingObjects checks what is assumed of each kind that files leave out, that it is said once, and that nothing is
// assumed of a cluster.
func TestMissingObjects(t *testing.T) {
	const made, free = "taken as one whose volumes are made where their pods run", "taken as one that any node can use"
	const vm = "taken as one without overhead, node selector and tolerations"
	ephemeral := func(class string) string {
		return "volumes: [{name: e, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: " +
			"5Gi}}" + class + "}}}}]"
	}
	inZone := podWith("old", "nodeName: n1, "+disk) + "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: " +
		"{topology.kubernetes.io/zone: test-zone-c}}\n" +
		"---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {drivers: []}\n"
	for name, c := range map[string]struct {
		text    string
		missing []Missing
		// cluster is why the pod web gets no node in a cluster, "" if it gets one.
		cluster string
	}{
		"a class": {podWith("web", disk) + claimText("data", "storageClassName: gp3") + podWith("api", disk), []Missing{{"StorageClass",
			"gp3", made}},
			`spec.volumes[0]: storage class "gp3" of claim "data" does not exist`},
		"the default class": {podWith("web", disk) + claimText("data", ""), []Missing{{"StorageClass", "(default)", made}},
			`spec.volumes[0]: claim "data" is not bound, names no storage class, and the cluster has no default one`},
		"a class of an ephemeral volume": {podWith("web", ephemeral(", storageClassName: gp3")), []Missing{{"StorageClass", "gp3", made}},
			`spec.volumes[0]: storage class "gp3" of claim "web-e" does not exist`},
		"a claim": {podWith("web", disk) + podWith("api", disk), []Missing{{"PersistentVolumeClaim", "app/data",
			"taken as bound to a volume that any node can use"}},
			`spec.volumes[0].persistentVolumeClaim.claimName: claim "data" does not exist in namespace app; create it`},
		"a volume": {podWith("web", disk) + claimText("data", "volumeName: v"), []Missing{{"PersistentVolume", "v", free}},
			`spec.volumes[0]: claim "data" names volume "v" and is not bound to it yet`},
		"a volume without a class": {podWith("web", disk) + claimText("data", `storageClassName: ""`), []Missing{{"PersistentVolume",
			"of PersistentVolumeClaim app/data", free}},
			`spec.volumes[0]: claim "data" is not bound and has no storage class; create a volume for it`},
		"a volume of an immediate class": {podWith("web", disk) + claimText("data", "storageClassName: now") + fmt.Sprintf(diskClass, "now"),
			[]Missing{{"PersistentVolume", "of PersistentVolumeClaim app/data", free}},
			`spec.volumes[0]: claim "data" waits for a volume (volumeBindingMode Immediate of storage class "now")`},
		"an ephemeral volume of an immediate class": {podWith("web", ephemeral(", storageClassName: now")) + fmt.Sprintf(diskClass, "now"),
			[]Missing{{"PersistentVolume", "of PersistentVolumeClaim app/web-e", free}},
			`spec.volumes[0]: claim "web-e" waits for a volume (volumeBindingMode Immediate of storage class "now")`},
		"a priority": {podWith("web", "priorityClassName: high") + podWith("api", "priorityClassName: high"), []Missing{{"PriorityClass",
			"high", "taken as one of the value 0"}},
			"spec.priorityClassName: no PriorityClass with name high was found"},
		"a priority of Kubernetes": {podWith("web", "priorityClassName: system-node-critical"), nil, ""},
		"a runtime": {podWith("web", "runtimeClassName: vm"), []Missing{{"RuntimeClass", "vm", vm}},
			`spec.runtimeClassName: RuntimeClass "vm" not found`},
		"a namespace": {podWith("web", "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "+
			"kubernetes.io/hostname, "+
			"namespaceSelector: {matchLabels: {team: x}}, labelSelector: {}}]}}"), []Missing{{"Namespace", "app",
			"taken as one without labels"}}, ""},
		"a namespace by its name": {podWith("web", "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"[{topologyKey: kubernetes.io/hostname, "+
			"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: x}}, labelSelector: {}}]}}"), nil, ""},
		"a claim where it is used": {podWith("web", disk) + inZone,
			[]Missing{{"PersistentVolumeClaim", "app/data", "taken as bound to a volume that nodes of zone test-zone-c can use, where it is used"}},
			`spec.volumes[0].persistentVolumeClaim.claimName: claim "data" does not exist in namespace app; create it`},
	} {
		t.Run(name, func(t *testing.T) {
			w, a := answered(t, anyPool+c.text, false)
			if diff := cmp.Diff(c.missing, w.missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.missing, a.Missing); diff != "" {
				t.Errorf("missing of the answer (-want +got):\n%s", diff)
			}
			for _, m := range c.missing {
				if line := fmt.Sprintf("%s %s is not among the files: %s", m.Kind, m.Name, m.Assumed); !slices.Contains(w.Notes(), line) {
					t.Errorf("notes %q, want %q", w.Notes(), line)
				}
			}
			if a.Pods.Unschedulable > 0 {
				t.Errorf("unschedulable: %+v, want none", a.Unschedulable)
			}
			if name == "a claim where it is used" && zonesOf(a)["web"] != "c" {
				t.Errorf("zones %v, want c", zonesOf(a))
			}
			w, a = answered(t, anyPool+c.text, true)
			if got := zonesOf(a)["web"]; len(w.missing) > 0 || c.cluster != "" && got != c.cluster || c.cluster == "" && len(got) != 1 {
				t.Errorf("in a cluster: missing %v, %s, want nothing missing and %q", w.missing, got, c.cluster)
			}
		})
	}
}

// TestManyMissing checks that many missing objects of a kind share a line, and that the document has them all.
func TestManyMissing(t *testing.T) {
	text := anyPool
	for i := range 12 {
		text += podWith(fmt.Sprintf("p-%02d", i), fmt.Sprintf("volumes: [{name: d, persistentVolumeClaim: {claimName: c-%02d}}]", i))
	}
	w, a := answered(t, text, false)
	want := []string{"PersistentVolumeClaim app/c-00, app/c-01, app/c-02 and 9 others are not among the files: each taken as bound to a " +
		"volume that any node can use"}
	if diff := cmp.Diff(want, w.missingLines()); diff != "" || len(a.Missing) != 12 {
		t.Errorf("%d missing, lines (-want +got):\n%s", len(a.Missing), diff)
	}
}
