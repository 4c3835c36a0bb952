package convert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// storage holds claims, volumes and classes from YAML.
type storage struct {
	claims  []*corev1.PersistentVolumeClaim
	volumes []*corev1.PersistentVolume
	classes []*storagev1.StorageClass
}

func newStorage(t testing.TB, documents string) *storage {
	t.Helper()
	s := &storage{}
	for document := range strings.SplitSeq(documents, "\n---\n") {
		switch {
		case strings.Contains(document, "kind: PersistentVolumeClaim\n"):
			s.claims = append(s.claims, decode[corev1.PersistentVolumeClaim](t, document))
		case strings.Contains(document, "kind: PersistentVolume\n"):
			s.volumes = append(s.volumes, decode[corev1.PersistentVolume](t, document))
		case strings.Contains(document, "kind: StorageClass\n"):
			s.classes = append(s.classes, decode[storagev1.StorageClass](t, document))
		default:
			t.Fatalf("a document of unknown kind: %s", document)
		}
	}
	return s
}

func (s *storage) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	for _, c := range s.claims {
		if c.Namespace == namespace && c.Name == name {
			return c
		}
	}
	return nil
}

func (s *storage) Volume(name string) *corev1.PersistentVolume {
	for _, v := range s.volumes {
		if v.Name == name {
			return v
		}
	}
	return nil
}

func (s *storage) Class(name string) *storagev1.StorageClass {
	if name == "" {
		return DefaultClass(s.classes)
	}
	for _, c := range s.classes {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// claimDoc returns a claim in namespace shop; metadata and spec are the contents of flow maps.
func claimDoc(name, metadata, spec, phase string) string {
	return fmt.Sprintf("kind: PersistentVolumeClaim\nmetadata: {namespace: shop, name: %s%s}\nspec: {%s}\nstatus: {phase: %s}",
		name, metadata, spec, phase)
}

func volumeDoc(name, metadata, spec string) string {
	return fmt.Sprintf("kind: PersistentVolume\nmetadata: {name: %s%s}\nspec: {%s}", name, metadata, spec)
}

func classDoc(name, metadata, rest string) string {
	return fmt.Sprintf("kind: StorageClass\nmetadata: {name: %s%s}\n%s", name, metadata, rest)
}

const (
	isBound = ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}"
	waits   = "provisioner: csi.example\nvolumeBindingMode: WaitForFirstConsumer"
	inZones = "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}, {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b]}]}]}}"
	onHost  = "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [h]}]}]}}"
	onGone  = "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, " +
		"values: [gone, lost, lent, old, past]}]}]}}"
	marked = ", annotations: {storageclass.kubernetes.io/is-default-class: 'true'}"
)

var storageText = strings.Join([]string{
	claimDoc("bound", isBound, "volumeName: two-zones", "Bound"),
	claimDoc("bound-too", isBound, "volumeName: two-zones-too", "Bound"),
	claimDoc("labeled", isBound, "volumeName: labeled", "Bound"),
	claimDoc("local", isBound, "volumeName: local", "Bound"),
	claimDoc("local-gone", isBound, "volumeName: local-gone", "Bound"),
	claimDoc("selected", ", annotations: {volume.kubernetes.io/selected-node: n1}", "storageClassName: plain", "Pending"),
	claimDoc("remote-by-host", isBound, "volumeName: by-host", "Bound"),
	claimDoc("nowhere", isBound, "volumeName: nowhere", "Bound"),
	claimDoc("ebs", isBound, "volumeName: ebs", "Bound"),
	claimDoc("gce", isBound, "volumeName: gce", "Bound"),
	claimDoc("azure", isBound, "volumeName: azure", "Bound"),
	claimDoc("azure-file", isBound, "volumeName: azure-file", "Bound"),
	claimDoc("cinder", isBound, "volumeName: cinder", "Bound"),
	claimDoc("vsphere", isBound, "volumeName: vsphere", "Bound"),
	claimDoc("leaving", isBound+", deletionTimestamp: '2026-11-20T09:00:00Z'", "volumeName: two-zones", "Bound"),
	claimDoc("lost", isBound, "volumeName: two-zones", "Lost"),
	claimDoc("without-volume", isBound, "volumeName: nothing", "Bound"),
	claimDoc("volume-leaving", isBound, "volumeName: leaving", "Bound"),
	claimDoc("binding", "", "volumeName: two-zones", "Pending"),
	claimDoc("made", ", uid: made-for", "volumeName: made-for", "Pending"),
	claimDoc("waiting", "", "storageClassName: zonal", "Pending"),
	claimDoc("waiting-beta", ", annotations: {volume.beta.kubernetes.io/storage-class: zonal}", "storageClassName: now", "Pending"),
	claimDoc("anywhere", "", "storageClassName: plain", "Pending"),
	claimDoc("in-tree", "", "storageClassName: in-tree", "Pending"),
	claimDoc("by-hand", "", "storageClassName: by-hand", "Pending"),
	claimDoc("default", "", "accessModes: [ReadWriteOnce]", "Pending"),
	claimDoc("classless", "", "storageClassName: ''", "Pending"),
	claimDoc("no-class", "", "storageClassName: missing", "Pending"),
	claimDoc("now", "", "storageClassName: now", "Pending"),
	claimDoc("unset-mode", "", "storageClassName: unset-mode", "Pending"),
	claimDoc("by-rack", "", "storageClassName: by-rack", "Pending"),
	claimDoc("no-place", "", "storageClassName: no-place", "Pending"),
	claimDoc("one-place", "", "storageClassName: one-place", "Pending"),
	claimDoc("floppy", "", "storageClassName: floppy", "Pending"),
	claimDoc("alone", "", "storageClassName: plain, accessModes: [ReadWriteOncePod]", "Pending"),
	claimDoc("web-0-mine", ", ownerReferences: [{apiVersion: v1, kind: Pod, name: web-0, uid: u0, controller: true}]",
		"storageClassName: zonal", "Pending"),
	claimDoc("web-0-another", "", "storageClassName: zonal", "Pending"),
	volumeDoc("two-zones", "", "csi: {driver: csi.example, volumeHandle: h}, "+inZones),
	volumeDoc("made-for", "", "claimRef: {uid: made-for}, csi: {driver: csi.example, volumeHandle: h}, "+inZones),
	volumeDoc("two-zones-too", "", "csi: {driver: csi.example, volumeHandle: i}, "+inZones),
	volumeDoc("labeled", ", labels: {failure-domain.beta.kubernetes.io/zone: a__c}", "csi: {driver: csi.example, volumeHandle: h}, "+inZones),
	volumeDoc("local", "", "local: {path: /x}, "+onHost),
	volumeDoc("local-gone", "", "local: {path: /x}, "+onGone),
	volumeDoc("by-host", "", "csi: {driver: csi.example, volumeHandle: h}, "+onHost),
	volumeDoc("nowhere", "", "csi: {driver: csi.example, volumeHandle: h}, nodeAffinity: {required: {nodeSelectorTerms: [{}]}}"),
	volumeDoc("ebs", "", "awsElasticBlockStore: {volumeID: v}"),
	volumeDoc("gce", "", "gcePersistentDisk: {pdName: v}"),
	volumeDoc("azure", "", "azureDisk: {diskName: v, diskURI: u}"),
	volumeDoc("azure-file", "", "azureFile: {secretName: s, shareName: v}"),
	volumeDoc("cinder", "", "cinder: {volumeID: v}"),
	volumeDoc("vsphere", "", "vsphereVolume: {volumePath: v}"),
	volumeDoc("leaving", ", deletionTimestamp: '2026-11-20T09:00:00Z'", "csi: {driver: csi.example, volumeHandle: h}"),
	classDoc("zonal", "", waits+"\nallowedTopologies: [{matchLabelExpressions: [{key: old.example.com/zone, values: [b, use1-az1]}]}, {matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [d]}]}]"),
	classDoc("plain", "", waits),
	classDoc("in-tree", "", "provisioner: kubernetes.io/gce-pd\nvolumeBindingMode: WaitForFirstConsumer"),
	classDoc("by-hand", "", "provisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer"),
	classDoc("old-default", marked+", creationTimestamp: '2026-11-20T09:00:00Z'",
		"provisioner: old.example\nvolumeBindingMode: WaitForFirstConsumer"),
	classDoc("young-default", strings.ReplaceAll(marked, "storageclass.",
		"storageclass.beta.")+", creationTimestamp: '2026-11-20T10:00:00Z'",
		"provisioner: young.example\nvolumeBindingMode: WaitForFirstConsumer"),
	classDoc("young-default-z", marked+", creationTimestamp: '2026-11-20T10:00:00Z'",
		"provisioner: z.example\nvolumeBindingMode: WaitForFirstConsumer"),
	classDoc("youngest", ", creationTimestamp: '2026-11-20T11:00:00Z'", waits),
	classDoc("now", "", "provisioner: csi.example\nvolumeBindingMode: Immediate"),
	classDoc("unset-mode", "", "provisioner: csi.example"),
	classDoc("by-rack", "", waits+"\nallowedTopologies: [{matchLabelExpressions: [{key: example.com/rack, values: [r]}]}]"),
	classDoc("no-place", "", waits+"\nallowedTopologies: [{}]"),
	classDoc("one-place", "", waits+"\nallowedTopologies: [{}, {matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [d]}]}]"),
	classDoc("floppy", "", "provisioner: floppy.example\nvolumeBindingMode: WaitForFirstConsumer"),
}, "\n---\n")

func zone(values ...string) label.Requirement {
	return label.Requirement{Key: model.LabelZone, Operator: label.In, Values: values}
}

// storageWords returns the vocabulary of a provider with unsupported topology keys and provisioners.
func storageWords() *Vocabulary {
	declared := cloud.Declared{
		Aliases:             map[string]string{"old.example.com/zone": model.LabelZone},
		ValueAliases:        map[string]map[string]string{model.LabelZone: {"use1-az1": "c"}},
		UnsupportedTopology: []string{"example.com/rack"}, UnsupportedProvisioners: []string{"floppy.example"},
	}
	return NewVocabulary(declared)
}

// volumesOf returns volumes of a pod, of which each uses a claim.
func volumesOf(claims ...string) string {
	var list []string
	for _, claim := range claims {
		list = append(list, "{name: v, persistentVolumeClaim: {claimName: "+claim+"}}")
	}
	return strings.Join(list, ", ")
}

// ephemeral returns a volume of a pod with a claim of its own.
func ephemeral(name, spec string) string {
	return "{name: " + name + ", ephemeral: {volumeClaimTemplate: {spec: {" + spec + "}}}}"
}

// podVolumes is a pod with volumes, and how they are converted.
type podVolumes struct {
	name, volumes string
	places        [][]label.Requirement
	// drivers of the volumes, in their order.
	drivers []string
	// refused is a part of the reason, empty if the pod is not rejected.
	refused string
}

func (v podVolumes) check(t *testing.T) {
	text := "metadata: {namespace: shop, name: web-0, uid: u0}\nspec: {NODE volumes: [" + v.volumes + "]}"
	around := &Around{Volumes: newStorage(t, storageText), Host: func(name string) bool { return name == "h" }}
	spec, _ := Pod(decode[corev1.Pod](t, strings.Replace(text, "NODE", "", 1)+unschedulableStatus), storageWords(), around)
	if diff := cmp.Diff(v.places, spec.VolumeAlternatives); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	var drivers []string
	for _, v := range spec.Volumes {
		drivers = append(drivers, v.Driver)
	}
	if diff := cmp.Diff(v.drivers, drivers); diff != "" {
		t.Errorf("drivers (-want +got):\n%s", diff)
	}
	switch {
	case v.refused == "":
		if spec.Rejected != nil {
			t.Errorf("rejected: %+v", *spec.Rejected)
		}
	case spec.Rejected == nil:
		t.Errorf("not rejected, want %q", v.refused)
	default:
		if !strings.Contains(spec.Rejected.Reason, v.refused) {
			t.Errorf("the reason is %q, want %q in it", spec.Rejected.Reason, v.refused)
		}
		if !strings.HasPrefix(spec.Rejected.Field, "spec.volumes[0]") {
			t.Errorf("rejected because of the field %q, want one of spec.volumes[0]", spec.Rejected.Field)
		}
	}
	onNode, _ := Pod(decode[corev1.Pod](t, strings.Replace(text, "NODE", "nodeName: n,", 1)), storageWords(), around)
	if diff := cmp.Diff(spec.Volumes, onNode.Volumes); diff != "" {
		t.Errorf("the volumes of the bound pod differ (-pending +bound):\n%s", diff)
	}
}

func TestVolumes(t *testing.T) {
	twoZones := [][]label.Requirement{{zone("a")}, {zone("b")}}
	for _, test := range []podVolumes{
		{"none", "{name: c, emptyDir: {}}", nil, nil, ""},
		{"bound", volumesOf("bound"), twoZones, []string{"csi.example"}, ""},
		{"the same twice", volumesOf("bound", "bound"), twoZones, []string{"csi.example"}, ""},
		{"two with the same zones", volumesOf("bound", "bound-too"), twoZones, []string{"csi.example", "csi.example"}, ""},
		{"two with one zone in common", volumesOf("bound", "waiting"), [][]label.Requirement{{zone("b")}}, []string{"csi.example", "csi.example"}, ""},
		{"zone labels beside the affinity", volumesOf("labeled"), [][]label.Requirement{{zone("a")}}, []string{"csi.example"}, ""},
		{"on a node's disk", volumesOf("local"), [][]label.Requirement{{{Key: model.LabelHostname, Operator: label.In, Values: []string{"h"}}}}, []string{""}, ""},
		{"being provisioned for a node", volumesOf("selected"),
			[][]label.Requirement{{{Key: model.FieldName, Operator: label.In, Values: []string{"n1"}}}}, []string{"csi.example"}, ""},
		{"elsewhere, by hostname", volumesOf("remote-by-host"),
			[][]label.Requirement{{{Key: model.LabelHostname, Operator: label.In, Values: []string{"h"}}}}, []string{"csi.example"}, ""},
		{"a term without expressions", volumesOf("nowhere"), [][]label.Requirement{{matchesNothing(model.LabelHostname)}}, []string{"csi.example"}, ""},
		{"EBS before CSI", volumesOf("ebs"), nil, []string{"ebs.csi.aws.com"}, ""},
		{"gce before CSI", volumesOf("gce"), nil, []string{"pd.csi.storage.gke.io"}, ""},
		{"azure before CSI", volumesOf("azure"), nil, []string{"disk.csi.azure.com"}, ""},
		{"azure-file before CSI", volumesOf("azure-file"), nil, []string{"file.csi.azure.com"}, ""},
		{"cinder before CSI", volumesOf("cinder"), nil, []string{"cinder.csi.openstack.org"}, ""},
		{"vsphere before CSI", volumesOf("vsphere"), nil, []string{"csi.vsphere.vmware.com"}, ""},
		{"waits for its pod", volumesOf("waiting"), [][]label.Requirement{{zone("b", "c")}, {zone("d")}}, []string{"csi.example"}, ""},
		{"a topology without expressions", volumesOf("no-place"), [][]label.Requirement{{matchesNothing(model.LabelHostname)}}, []string{"csi.example"}, ""},
		{"and one with some", volumesOf("one-place"), [][]label.Requirement{{zone("d")}}, []string{"csi.example"}, ""},
		{"class by annotation", volumesOf("waiting-beta"), [][]label.Requirement{{zone("b", "c")}, {zone("d")}}, []string{"csi.example"}, ""},
		{"waits, anywhere", volumesOf("anywhere"), nil, []string{"csi.example"}, ""},
		{"in-tree provisioner", volumesOf("in-tree"), nil, []string{"pd.csi.storage.gke.io"}, ""},
		{"volumes made by hand", volumesOf("by-hand"), nil, []string{""}, ""},
		{"the youngest default class, the first by name", volumesOf("default"), nil, []string{"young.example"}, ""},
		{"ephemeral, made already", ephemeral("mine", "storageClassName: now"), [][]label.Requirement{{zone("b", "c")}, {zone("d")}},
			[]string{"csi.example"}, ""},
		{"ephemeral, to be made", ephemeral("new", "storageClassName: plain"), nil, []string{"csi.example"}, ""},
		{"ephemeral, default class", ephemeral("new", "accessModes: [ReadWriteOnce]"), nil, []string{"young.example"}, ""},
		{"being bound to what was made for it", volumesOf("made"), twoZones, []string{"csi.example"}, ""},
	} {
		t.Run(test.name, test.check)
	}
}

// TestRejectedVolumes checks that a pod is rejected because of its volumes, and that the others are converted.
func TestRejectedVolumes(t *testing.T) {
	twoZones := [][]label.Requirement{{zone("a")}, {zone("b")}}
	for _, test := range []podVolumes{
		{"ephemeral, the name is taken", ephemeral("another", "storageClassName: plain"),
			[][]label.Requirement{{zone("b", "c")}, {zone("d")}}, []string{"csi.example"}, "was not created for this pod"},
		{"no such claim", volumesOf("missing"), nil, []string{""}, "does not exist in namespace shop"},
		{"claim leaving", volumesOf("leaving"), twoZones, []string{"csi.example"}, "is being deleted"},
		{"lost", volumesOf("lost"), twoZones, []string{"csi.example"}, "has lost its volume"},
		{"no such volume", volumesOf("without-volume"), nil, []string{""}, `volume "nothing" of claim "without-volume" does not exist`},
		{"volume leaving", volumesOf("volume-leaving"), nil, []string{"csi.example"}, `volume "leaving" of claim "volume-leaving" is being deleted`},
		{"binding", volumesOf("binding"), nil, []string{""}, "is not bound to it yet"},
		{"wants no class", volumesOf("classless"), nil, []string{""}, "create a volume for it"},
		{"no such class", volumesOf("no-class"), nil, []string{""}, `storage class "missing" of claim "no-class" does not exist`},
		{"on the disk of a node that is gone", volumesOf("local-gone"),
			[][]label.Requirement{{{Key: model.LabelHostname, Operator: label.In,
				Values: []string{"gone", "lost", "lent", "old", "past"}}}}, []string{""},
			`volume "local-gone" of claim "local-gone" can be used on node gone, lent, lost and 2 more only, and no node has this hostname`},
		{"immediate", volumesOf("now"), nil, []string{"csi.example"}, "volumeBindingMode Immediate"},
		{"immediate when unset", volumesOf("unset-mode"), nil, []string{"csi.example"}, "volumeBindingMode Immediate"},
		{"topology that nodes do not carry", volumesOf("by-rack"), nil, []string{"csi.example"}, "allowedTopologies by example.com/rack"},
		{"provisioner that nodes cannot use", volumesOf("floppy"), nil, []string{"floppy.example"}, "has the provisioner floppy.example"},
		{"the others count beside a broken one", volumesOf("missing", "bound"), twoZones, []string{"", "csi.example"}, `claim "missing"`},
	} {
		t.Run(test.name, test.check)
	}
}

// TestVolumesOfExistingNodes checks the reason for which no new node can run a pod.
func TestVolumesOfExistingNodes(t *testing.T) {
	around := &Around{Volumes: newStorage(t, storageText), Host: func(name string) bool { return name == "h" }}
	for claim, want := range map[string]string{
		"local":    `spec.volumes[1]: volume "local" of claim "local" can be used on node h only`,
		"selected": `spec.volumes[1]: the volume of claim "selected" is being provisioned for node "n1"`,
		"bound":    "",
	} {
		text := "metadata: {namespace: shop, name: web-0, uid: u0}\nspec: {volumes: [{name: c, emptyDir: {}}, " + volumesOf(claim) + "]}"
		spec, _ := Pod(decode[corev1.Pod](t, text+unschedulableStatus), storageWords(), around)
		got := ""
		if spec.NoNewNode != nil {
			got = spec.NoNewNode.Field + ": " + spec.NoNewNode.Reason
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("claim %s: no new node helps because %q, want %q", claim, got, want)
		}
	}
}

// TestVolumesOfOnePod checks that claims that no other pod will use are distinguished from those that may be shared.
func TestVolumesOfOnePod(t *testing.T) {
	for _, test := range []struct {
		name, owner, volume string
		shared              bool
	}{
		{"of a StatefulSet's template", "kind: StatefulSet", "persistentVolumeClaim: {claimName: data-web-0}", false},
		{"of all members of a StatefulSet", "kind: StatefulSet", "persistentVolumeClaim: {claimName: common}", true},
		{"of a Deployment", "kind: ReplicaSet", "persistentVolumeClaim: {claimName: data-web-0}", true},
		{"ephemeral", "kind: ReplicaSet", "ephemeral: {}", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec, _ := Pod(decode[corev1.Pod](t, "metadata: {namespace: shop, name: web-0, ownerReferences: [{apiVersion: apps/v1, "+test.owner+
				", name: o, uid: o, controller: true}]}\nspec: {nodeName: n, volumes: [{name: v, "+test.volume+"}]}"), words(), nil)
			if len(spec.Volumes) != 1 || spec.Volumes[0].Shared != test.shared {
				t.Errorf("volumes are %+v, want one, shared: %t", spec.Volumes, test.shared)
			}
		})
	}
}

func TestReadWriteOncePod(t *testing.T) {
	pod := func(name, created, node string) *corev1.Pod {
		status := unschedulableStatus
		if node != "" {
			status = ""
		}
		return decode[corev1.Pod](t, "metadata: {namespace: shop, name: "+name+", uid: "+name+", creationTimestamp: '2026-11-20T0"+created+":00:00Z'}\nspec: {nodeName: '"+
			node+"', volumes: [{name: v, persistentVolumeClaim: {claimName: alone}}]}"+status)
	}
	tests := []struct {
		name    string
		asks    *corev1.Pod
		others  []*corev1.Pod
		refused string
	}{
		{"no other pod", pod("a", "1", ""), nil, ""},
		{"one on a node has it", pod("a", "1", ""), []*corev1.Pod{pod("b", "2", "n")}, "pod b has it"},
		{"an elder one waits, too", pod("b", "2", ""), []*corev1.Pod{pod("a", "1", "")}, ""},
		{"the first of several, in any order", pod("c", "3", ""), []*corev1.Pod{pod("b", "2", "n"), pod("a", "1", "n")}, "pod a has it"},
		{"the first of several, the other way round", pod("c", "3", ""), []*corev1.Pod{pod("a", "1", "n"), pod("b", "2", "n")}, "pod a has it"},
		{"on a node before a waiting elder", pod("b", "2", "n"), []*corev1.Pod{pod("a", "1", "")}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			around := &Around{Volumes: newStorage(t, storageText), Users: func(namespace, claim string) []*corev1.Pod {
				if namespace != "shop" || claim != "alone" {
					t.Errorf("lookup of %s/%s", namespace, claim)
				}
				return append(test.others, test.asks)
			}}
			spec, _ := Pod(test.asks, words(), around)
			switch {
			case (spec.Rejected == nil) != (test.refused == ""):
				t.Errorf("(spec.Rejected == nil) is %v, want %v, rejected %+v, want %q", (spec.Rejected == nil),
					(test.refused == ""), spec.Rejected, test.refused)
			case spec.Rejected != nil && !strings.Contains(spec.Rejected.Reason, test.refused):
				t.Errorf("spec.Rejected != nil && !strings.Contains(spec.Rejected.Reason, test.refused), rejected %+v, want %q",
					spec.Rejected, test.refused)
			}
			if len(spec.Volumes) != 1 || !spec.Volumes[0].Exclusive {
				t.Errorf("its volumes are %+v, want one that is exclusive", spec.Volumes)
			}
		})
	}
}

// TestTooManyPlaces checks that combinations are limited, however many volumes a pod has.
func TestTooManyPlaces(t *testing.T) {
	var demands []demand
	for i := range 40 {
		d := demand{}
		for j := range 3 {
			d.alternatives = append(d.alternatives, []label.Requirement{{Key: fmt.Sprint("key-", i), Operator: label.In,
				Values: []string{fmt.Sprint(j)}}})
		}
		demands = append(demands, d)
	}
	if places, few := together(demands[:5]); !few || len(places) != 243 {
		t.Errorf("5 volumes of 3 places each: %d combinations, within the limit %t, want 243", len(places), few)
	}
	if _, few := together(demands); few {
		t.Error("40 volumes of 3 places each: want too many combinations")
	}
}

// TestContradiction checks that contradictory volumes give a contradictory requirement, and that the rejection names
// the first two of them.
func TestContradiction(t *testing.T) {
	in := func(claim, volume string, alternatives ...[]label.Requirement) demand {
		return demand{volume: model.Volume{Claim: "app/" + claim}, of: volume, alternatives: alternatives}
	}
	demands := []demand{in("anywhere", "v"), in("ca", "va", []label.Requirement{zone("a")}), in("cb", "", []label.Requirement{zone("b")},
		[]label.Requirement{zone("c")})}
	places, few := together([]demand{demands[1], in("cb", "vb", []label.Requirement{zone("b")})})
	if diff := cmp.Diff([][]label.Requirement{{zone("a"), zone("b")}}, places, cmpopts.EquateEmpty()); !few || diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	want := refuse("spec.volumes", `claim "ca" (volume "va") requires topology.kubernetes.io/zone In [a], claim "cb" requires `+
		`topology.kubernetes.io/zone In [b c], `+
		"and no node is in both; use volumes whose topologies agree")
	if diff := cmp.Diff(want, apart(demands)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if got := apart([]demand{in("ca", "va", []label.Requirement{zone("a")}, []label.Requirement{zone("b")}), demands[2]}); got != nil {
		t.Errorf("volumes that agree on a zone: %+v", got)
	}
}

// TestSharedVolumeToBeMade checks that pods that share a claim whose volume is provisioned for the first of them must
// be in one zone. This does not apply to an existing volume, a claim of one pod, or a claim that only one pod may
// use.
func TestSharedVolumeToBeMade(t *testing.T) {
	together := model.Term{Key: model.LabelZone, Together: true, Selector: model.Selector{Namespaces: []string{"shop"},
		Requirements: []label.Requirement{{Key: "volume:shop/waiting", Operator: label.Exists}}}}
	tests := []struct {
		name, volume string
		labels       map[string]string
		terms        []model.Term
	}{
		{"to be made", "persistentVolumeClaim: {claimName: waiting}", map[string]string{"app": "a", "volume:shop/waiting": ""},
			[]model.Term{together}},
		{"there", "persistentVolumeClaim: {claimName: bound}", map[string]string{"app": "a"}, nil},
		{"its own", "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: plain}}}", map[string]string{"app": "a"}, nil},
		{"of one at a time", "persistentVolumeClaim: {claimName: alone}", map[string]string{"app": "a"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := decode[corev1.Pod](t, "metadata: {namespace: shop, name: a, uid: a, labels: {app: a}}\nspec: {volumes: [{name: v, "+test.volume+"}]}"+unschedulableStatus)
			spec, _ := Pod(pod, words(), &Around{Volumes: newStorage(t, storageText)})
			if diff := cmp.Diff(test.labels, spec.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.terms, spec.Terms); diff != "" {
				t.Errorf("terms (-want +got):\n%s", diff)
			}
			if len(pod.Labels) != 1 {
				t.Errorf("the pod's own labels were changed to %v", pod.Labels)
			}
		})
	}
}
