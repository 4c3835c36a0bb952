package offline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// received reads a text as a file.
func received(t *testing.T, text string) *Manifests {
	t.Helper()
	o, err := newManifests()
	if err != nil {
		t.Fatal(err)
	}
	o.readPath("-", strings.NewReader(text))
	return o
}

const receivedPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
`

// TestClusterScoped checks that objects of cluster-scoped kinds have no namespace, whatever the file says, and that it
// does not distinguish them.
func TestClusterScoped(t *testing.T) {
	const claim = "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: one, namespace: karpenter}\n" +
		"spec: {nodeClassRef: {group: g, kind: K, name: k}, requirements: []}\n"
	const class = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: c, namespace: karpenter}\n" +
		"spec: {role: nodes, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{tags: {a: b}}], " +
		"securityGroupSelectorTerms: [{tags: {a: b}}]}\n"
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: one, namespace: karpenter}\n"
	pool := strings.Replace(receivedPool, "{name: general}", "{name: general, namespace: karpenter}", 1)
	o := received(t, strings.Join([]string{pool, claim, class, node, receivedPool}, "---\n"))
	var got []string
	for _, p := range o.pools {
		got = append(got, "pool "+key(p.object))
	}
	for _, c := range o.claims {
		got = append(got, "claim "+key(c.object))
	}
	for _, c := range o.classesOfAWS {
		got = append(got, "class "+key(c.object))
	}
	for _, n := range o.nodes {
		got = append(got, "node "+key(n.object))
	}
	for _, p := range o.Problems {
		got = append(got, p.Error())
	}
	want := []string{"pool /general", "claim /one", "class /c", "node /one", "standard input: document 5: NodePool general: " +
		"metadata.name: there is another object of the name (standard input: document 1: NodePool karpenter/general)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects and problems (-want +got):\n%s", diff)
	}
}

// TestDefaults checks that a field that is null has its default, as one that is left out, and that a status is kept.
func TestDefaults(t *testing.T) {
	plain := received(t, receivedPool)
	null := received(t, receivedPool+"      expireAfter: null\n  disruption: null\n  weight: null\n  limits: null\n")
	if len(plain.pools) != 1 || len(null.pools) != 1 {
		t.Fatalf("pools: %d and %d, problems: %q %q", len(plain.pools), len(null.pools), plain.Problems, null.Problems)
	}
	if diff := cmp.Diff(plain.pools[0].object.Spec, null.pools[0].object.Spec); diff != "" {
		t.Errorf("with null (-without +with):\n%s", diff)
	}
	o := received(t, "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: one}\n"+
		"spec: {nodeClassRef: {group: g, kind: K, name: k}, requirements: []}\nstatus: {providerID: 'kwok://one'}\n")
	if len(o.claims) != 1 || o.claims[0].object.Status.ProviderID != "kwok://one" || o.claims[0].object.Spec.ExpireAfter.Duration == nil {
		t.Errorf("the claim has lost its status or its default: %q", o.Problems)
	}
}

// TestListsOfOneKind checks that members of a list of one kind that have no kind have that of the list, and that a capture
// of them can be read.
func TestListsOfOneKind(t *testing.T) {
	const pod = `{"metadata": {"name": "web-1", "namespace": "app"}, "spec": {"containers": [{"name": "c", "image": "c"}]}}`
	const pool = `{"metadata": {"name": "general"}, "spec": {"template": {"spec": {"nodeClassRef": {"group": "g", "kind": "K", ` +
		`"name": "k"}, "requirements": []}}}}`
	list := func(kind, version, item string) string {
		return `{"kind": "` + kind + `", "apiVersion": "` + version + `", "metadata": {"resourceVersion": "1"}, "items": [` + item + `]}`
	}
	for name, c := range map[string]struct{ text, problem string }{
		"lists": {list("PodList", "v1", pod) + list("NodePoolList", "karpenter.sh/v1", pool), ""},
		"lists in a List": {list("List", "v1", list("PodList", "v1", pod)+","+list("NodePoolList", "karpenter.sh/v1", pool)),
			""},
		"with the kind": {list("PodList", "v1", `{"kind":"Pod","apiVersion":"v1",`+pod[1:]) + list("NodePoolList", "karpenter.sh/v1", pool), ""},
		"a List of any kinds": {list("List", "v1", pod),
			"standard input: document 1: item 1: apiVersion or kind is missing, want a Kubernetes object"},
		"not an object": {list("PodList", "v1", `"pod"`), "standard input: document 1: item 1: is a text, want a Kubernetes object"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := newManifests()
			if err != nil {
				t.Fatal(err)
			}
			o.keep = true
			if o.readPath("-", strings.NewReader(c.text)); c.problem != "" {
				if len(o.Problems) != 1 || o.Problems[0].Error() != c.problem {
					t.Errorf("problems %q, want %q", o.Problems, c.problem)
				}
				return
			}
			again := newAgain(t, o)
			for _, o := range []*Manifests{o, again} {
				if len(o.Problems) > 0 || len(o.pods) != 1 || len(o.pools) != 1 || key(o.pods[0].object) != "app/web-1" {
					t.Errorf("%d pods, %d pools, problems %q, want the pod app/web-1 and the pool", len(o.pods), len(o.pools), o.Problems)
				}
			}
		})
	}
}

// newAgain reads what is kept for a capture.
func newAgain(t *testing.T, o *Manifests) *Manifests {
	t.Helper()
	var text strings.Builder
	for _, object := range o.given {
		text.Write(object)
	}
	return received(t, text.String())
}

// TestMergeKeys checks that merge keys mean what they mean to kubectl, and that a field is written once.
func TestMergeKeys(t *testing.T) {
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, labels: &l {a: one, b: two}}\nspec:\n  template:\n" +
		"    metadata:\n      labels:\n%s\n    spec: {restartPolicy: Never, containers: [{name: c, image: c}]}\n"
	for name, c := range map[string]struct {
		labels  string
		want    map[string]string
		problem string
	}{
		"without an override": {"        <<: *l\n        c: three", map[string]string{"a": "one", "b": "two", "c": "three"}, ""},
		"override":            {"        <<: *l\n        a: mine", map[string]string{"a": "mine", "b": "two"}, ""},
		"override of the first of two": {"        <<: [{a: first, c: first}, *l]\n        c: mine",
			map[string]string{"a": "first", "b": "two", "c": "mine"}, ""},
		"twice": {"        <<: *l\n        a: mine\n        a: other", nil,
			`standard input: document 1: yaml: line 10: key "a" already set in map`},
		"two merge keys": {"        <<: *l\n        <<: {c: three}\n        a: mine",
			map[string]string{"a": "mine", "b": "two", "c": "three"}, ""},
		"no mapping to merge": {"        <<: one\n        a: mine", nil,
			"standard input: document 1: yaml: map merge requires map or sequence of maps as the value"},
	} {
		t.Run(name, func(t *testing.T) {
			o := received(t, strings.Replace(job, "%s", c.labels, 1))
			var got map[string]string
			if len(o.workloads) == 1 {
				got = o.workloads[0].template.Labels
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if problems := fmt.Sprint(o.Problems); c.problem != "" && problems != "["+c.problem+"]" || c.problem == "" && problems != "[]" {
				t.Errorf("problems %s, want %q", problems, c.problem)
			}
		})
	}
}

// TestGeneratedNames checks that objects with metadata.generateName get names of their own, whatever the order of the
// input, and the same ones when they are read again.
func TestGeneratedNames(t *testing.T) {
	job := func(cpu string) string {
		return "---\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: run-, namespace: app}\nspec: {template: {spec: " +
			"{restartPolicy: Never, containers: [{name: c, image: c, resources: {requests: {cpu: " + cpu + "}}}]}}}\n"
	}
	names := func(text string) map[string]string {
		o := received(t, text)
		if len(o.Problems) > 0 {
			t.Fatal(o.Problems)
		}
		list := map[string]string{}
		for _, w := range o.workloads {
			list[w.meta.Name] = w.template.Spec.Containers[0].Resources.Requests.Cpu().String()
		}
		return list
	}
	got := names(job("1") + job("2") + job("1"))
	if len(got) != 3 {
		t.Fatalf("%d names, want 3: %v", len(got), got)
	}
	for name := range got {
		if !strings.HasPrefix(name, "run-") || len(name) != len("run-")+5 {
			t.Errorf("the name is %s, want run- and five letters", name)
		}
	}
	if diff := cmp.Diff(got, names(job("1")+job("1")+job("2"))); diff != "" {
		t.Errorf("names and requests in another order (-before +after):\n%s", diff)
	}
	pool := received(t, strings.Replace(receivedPool, "name: general", "generateName: general-", 1))
	if len(pool.pools) != 1 || !strings.HasPrefix(pool.pools[0].object.Name, "general-") {
		t.Errorf("a pool of a generated name is not read: %q", pool.Problems)
	}
	none := received(t, strings.Replace(job("1"), "generateName: run-, ", "", 1))
	if len(none.Problems) != 1 || !strings.Contains(none.Problems[0].Error(), "metadata.name is missing") {
		t.Errorf("without a name: %q", none.Problems)
	}
}

// TestUnknownWorkloads checks that a kind that is not read and has a template of pods is reported as such.
func TestUnknownWorkloads(t *testing.T) {
	const pods = "{template: {spec: {containers: [{name: c, image: c}]}}}"
	o := received(t, strings.Join([]string{
		"apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: a}\nspec: " + pods + "\n",
		"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {tasks: [" + pods + "]}\n",
		"apiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: a}\nspec: {template: {spec: {}}}\n",
	}, "---\n"))
	want := []string{"1 object of kind AnalysisTemplate of argoproj.io/v1alpha1",
		"1 object of kind Job of batch.volcano.sh/v1alpha1: its pods are not known, and not planned",
		"1 object of kind Rollout of argoproj.io/v1alpha1: its pods are not known, and not planned"}
	if diff := cmp.Diff(want, o.ignored()); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

// TestOlderVersionsOfBuffers checks that buffers and quotas of v1alpha1 are read, in lists as well, and other older
// versions are not.
func TestOlderVersionsOfBuffers(t *testing.T) {
	const buffer = "metadata: {name: b, namespace: app}\nspec: {podTemplateRef: {name: p}, replicas: 2}\n"
	const quota = "apiVersion: autoscaling.x-k8s.io/v1alpha1\nkind: CapacityQuota\nmetadata: {name: q}\nspec: {limits: {resources: {cpu: " +
		"'4'}}}\n"
	o := received(t, "apiVersion: autoscaling.x-k8s.io/v1alpha1\nkind: CapacityBuffer\n"+buffer+"---\n"+quota+"---\n"+
		`{"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "CapacityBufferList", "items": [
			{"metadata": {"name": "c", "namespace": "app"}, "spec": {"podTemplateRef": {"name": "p"}, "replicas": 2}}]}`)
	var got []string
	for _, b := range o.buffers.objects {
		got = append(got, b.object.APIVersion+" "+key(b.object))
	}
	for _, q := range o.quotas {
		got = append(got, q.object.APIVersion+" "+q.object.Name)
	}
	const version = "autoscaling.x-k8s.io/v1beta1 "
	if diff := cmp.Diff([]string{version + "app/b", version + "app/c", version + "q"}, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s\n%q", diff, o.Problems)
	}
	o = received(t, "apiVersion: autoscaling.x-k8s.io/v1alpha2\nkind: CapacityBuffer\n"+buffer)
	if len(o.buffers.objects) != 0 || len(o.Problems) != 1 || !strings.Contains(o.Problems[0].Error(), "want autoscaling.x-k8s.io/v1beta1") {
		t.Errorf("v1alpha2: %d buffers, problems %q", len(o.buffers.objects), o.Problems)
	}
}

// TestTemplates checks that a file that is a template gives one line, and that braces in a text are no template.
func TestTemplates(t *testing.T) {
	const line = "standard input: document %d: is a template ({{), want manifests; render it first, such as: helm template CHART | " +
		"kubectl karpenter ... -f -"
	for name, c := range map[string]struct {
		text  string
		want  []string
		pools int
	}{
		"a value": {strings.ReplaceAll(receivedPool, "general", "{{ .Values.name }}"), []string{fmt.Sprintf(line, 1)}, 0},
		"a block, and two documents": {"{{- if .Values.pool }}\n" + receivedPool + "---\nmetadata:\n  {{- include \"a\" . }}\n  b: c\n{{- " +
			"end }}\n",
			[]string{fmt.Sprintf(line, 1)}, 0},
		"a document before": {receivedPool + "---\nname: {{ .Values.name }}-x\n", []string{fmt.Sprintf(line, 2)}, 1},
		"a fault beside braces in a text": {"a: b: c\n---\na: '{{ b }}'\n",
			[]string{"standard input: document 1: yaml: mapping values are not allowed in this context",
				"standard input: document 2: apiVersion or kind is missing, want a Kubernetes object"}, 0},
		"braces in a text": {strings.Replace(receivedPool, "{name: general}", "{name: general, annotations: {a: '{{ b }}'}}", 1), nil, 1},
		"another fault":    {"a: b: c\n", []string{"standard input: document 1: yaml: mapping values are not allowed in this context"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := received(t, c.text)
			var got []string
			for _, p := range o.Problems {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" || len(o.pools) != c.pools {
				t.Errorf("%d pools, want %d; problems (-want +got):\n%s", len(o.pools), c.pools, diff)
			}
		})
	}
}
