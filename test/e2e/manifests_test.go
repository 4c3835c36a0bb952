package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// This file runs the matrix: manifests in the style of every year since 2021, applied unchanged to a cluster named
// workshop.

const manifestFolder = "testdata/manifests"

// TestManifests applies all manifests beside each other on one cluster. Each launches a node for a pod, as the
// manifest's version documents (expect.yml), and removes it again. The output of `kubectl karpenter migrate` for it launches
// the same.
func TestManifests(t *testing.T) {
	t.Parallel()
	var plays struct {
		Core []string          `json:"core"`
		Not  map[string]string `json:"not"`
	}
	readYAML(t, "plays.yml", &plays)
	var expected map[string]map[string]expectation
	readYAML(t, "expect.yml", &expected)
	w := startWorkshop(t)
	t.Run("all", func(t *testing.T) { // ends with the last subtest, so that the cluster outlives them
		t.Run("workloads", func(t *testing.T) {
			t.Parallel()
			(&manifest{stage: newStage(t, w.cluster, "matrix-workloads"), world: w, name: "workloads"}).playWorkloads()
		})
		t.Run("over running nodes", func(t *testing.T) {
			t.Parallel()
			(&manifest{stage: newStage(t, w.cluster, "matrix-over"), world: w, name: "over"}).playOver()
		})
		for _, name := range manifestNames(t) {
			switch _, not := plays.Not[name]; {
			case not || strings.HasPrefix(name, "workload-") || !slices.Contains(plays.Core, name) && effort(0, 1, 1) == 0:
			case len(expected[name]) == 0:
				t.Errorf("expect.yml has no entry for %s", name)
			default:
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					(&manifest{stage: newStage(t, w.cluster, "matrix-"+name), world: w, name: name, expected: expected[name]}).play()
				})
			}
		}
	})
	if refused := w.kubelets.Refused(); len(refused) > 0 {
		t.Errorf("instances did not join: %v", refused)
	}
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(manifestFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func manifestNames(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(manifestFolder, "*.yaml"))
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d manifests, %v", len(paths), err)
	}
	var names []string
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".yaml"))
	}
	return names
}

// startWorkshop starts a simulated AWS with the objects that the manifests name: a cluster workshop, its instance
// profiles and roles. The controller serves v1beta1.
func startWorkshop(t *testing.T) *awsWorld {
	t.Helper()
	w := startAWSFor(t, "workshop", "workshop-nodes")
	for _, profile := range []string{"workshop-nodes", "KarpenterNodeInstanceProfile-workshop", "nodes"} {
		w.iam(t, url.Values{"Action": {"CreateInstanceProfile"}, "InstanceProfileName": {profile}})
		w.iam(t, url.Values{"Action": {"AddRoleToInstanceProfile"}, "InstanceProfileName": {profile}, "RoleName": {"workshop-nodes"}})
	}
	s := &stage{cluster: w.cluster, t: t, name: "workshop"}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter"}}
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	s.create(service)
	s.apply(filepath.Join("testdata", "workshop.yaml"))
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	w.run(t, "--karpenter-service=karpenter", "--webhook-port="+strconv.Itoa(ports[0]))
	for _, text := range []string{
		"{apiVersion: karpenter.sh/v1beta1, kind: NodePool, metadata: {name: trial}, spec: {template: {spec: {nodeClassRef: {name: trial}, requirements: []}}}}",
		"{apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, metadata: {name: trial}, spec: {amiFamily: AL2023, role: a, subnetSelectorTerms: [{tags: {a: b}}], securityGroupSelectorTerms: [{tags: {a: b}}]}}",
	} {
		await(t, patience, "v1beta1 to be converted", func(ctx context.Context) error {
			trial := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &trial.Object); err != nil {
				return err
			}
			return w.Create(ctx, trial, client.DryRunAll)
		})
	}
	return w
}

// iam sends the simulated AWS a request that no controller sends. The simulation checks only the scope of a
// signature.
func (w *awsWorld) iam(t *testing.T, form url.Values) {
	t.Helper()
	form.Set("Version", "2010-05-08")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimPrefix(w.environment[0], "AWS_ENDPOINT_URL="), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+awsKey+"/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", form.Get("Action"), answer.Status, text, err)
	}
}

// expectation is the entry of a pool in expect.yml.
type expectation struct {
	Capacity   []string          `json:"capacity"`
	Types      []string          `json:"types"`
	Families   []string          `json:"families"`
	Categories []string          `json:"categories"`
	Zones      []string          `json:"zones"`
	Arch       []string          `json:"arch"`
	CPUOver    string            `json:"cpuOver"`
	CPUUnder   string            `json:"cpuUnder"`
	Generation string            `json:"generationOver"`
	Taints     []string          `json:"taints"`
	Startup    []string          `json:"startup"`
	Labels     map[string]string `json:"labels"`
	Empty      string            `json:"empty"`
	Expire     string            `json:"expire"`
	Profile    string            `json:"profile"`
	MaxPods    string            `json:"maxPods"`
}

// manifest is one of the manifests, on its stage.
type manifest struct {
	*stage
	world    *awsWorld
	name     string
	expected map[string]expectation
}

// here replaces the zones in manifests by those of the simulated AWS.
var here = strings.NewReplacer("test-zone-a", "us-east-1a", "test-zone-b", "us-east-1b")

// play applies the manifest, then its migrated form.
func (m *manifest) play() {
	text, err := os.ReadFile(filepath.Join(manifestFolder, m.name+".yaml"))
	if err != nil {
		m.t.Fatal(err)
	}
	written := here.Replace(string(text))
	for _, pool := range slices.Sorted(keysOf(m.expected)) {
		m.create(m.workload(pool))
	}
	before := m.act(written, "as it is written")
	if m.t.Failed() {
		return
	}
	after := m.act(m.migrated(written), "migrated")
	for pool, bought := range before {
		if bought != after[pool] {
			m.t.Errorf("pool %s launched %s, and migrated %s", pool, bought, after[pool])
		}
	}
}

func keysOf[V any](of map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range of {
			if !yield(key) {
				return
			}
		}
	}
}

// act applies manifests, scales their workloads up and down, and deletes them. It returns what each pool launched.
func (m *manifest) act(text, how string) map[string]string {
	m.t.Helper()
	objects := m.applyText(text)
	bought := map[string]string{}
	for _, pool := range slices.Sorted(keysOf(m.expected)) {
		m.scale(pool, 1)
	}
	for _, pool := range slices.Sorted(keysOf(m.expected)) {
		await(m.t, patience, how+": the pod of "+pool+" to run", m.running(pool, 1))
		bought[pool] = m.check(pool, m.expected[pool], how)
	}
	for _, pool := range slices.Sorted(keysOf(m.expected)) {
		m.scale(pool, 0)
	}
	for _, pool := range slices.Sorted(keysOf(m.expected)) {
		if soon(m.expected[pool].Empty) {
			await(m.t, patience, how+": the empty node of "+pool+" to leave", m.left(pool))
		}
	}
	for _, object := range objects { // the nodes of a pool are removed with it
		if kind := object.GetKind(); kind == "Provisioner" || kind == "NodePool" {
			m.remove(object)
		}
	}
	for _, pool := range slices.Sorted(keysOf(m.expected)) {
		await(m.t, patience, how+": what "+pool+" bought to leave", m.left(pool))
		await(m.t, patience, how+": the pool "+pool+" to be gone", m.gone(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: pool}}))
	}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Provisioner" && kind != "NodePool" {
			if err := m.Delete(m.t.Context(), object); client.IgnoreNotFound(err) != nil {
				m.t.Fatal(err)
			}
		}
	}
	for _, object := range objects {
		await(m.t, patience, how+": "+object.GetKind()+" "+object.GetName()+" to be gone", m.gone(object))
		if object.GetKind() == "Provisioner" { // the class that was created from it is removed automatically
			await(m.t, patience, how+": the class of "+object.GetName()+" to be gone", m.gone(&awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: object.GetName()}}))
		}
	}
	return bought
}

// playWorkloads applies Deployments with old names: one that is spread over zones, both unchanged and migrated, and
// one whose pods have anti-affinity to each other, which has no selector before it is migrated.
func (m *manifest) playWorkloads() {
	for _, test := range []struct {
		app             string
		migrated        bool
		replicas, nodes int // nodes: minimum
		zones           int
		labels          map[string]string
	}{
		{"spread", false, 6, 3, 3, map[string]string{karpv1.LabelNodePool: "default"}},
		{"spread", true, 6, 3, 3, map[string]string{karpv1.LabelNodePool: "default"}},
		{"apart", true, 3, 3, 1, map[string]string{karpv1.LabelCapacityType: "spot", "karpenter.k8s.aws/instance-family": "m5"}},
	} {
		text, err := os.ReadFile(filepath.Join(manifestFolder, "workload-"+test.app+".yaml"))
		if err != nil {
			m.t.Fatal(err)
		}
		how := test.app + ", as it is written"
		if test.migrated {
			text, how = []byte(m.migrated(string(text))), test.app+", migrated"
		}
		objects := m.applyText(string(text))
		await(m.t, patience, how+": all pods to run", m.running(test.app, test.replicas))
		await(m.t, patience, how+": pods to be where they should", m.spread(test.app, test.nodes, test.zones, test.labels))
		for _, object := range objects {
			m.remove(object)
		}
		await(m.t, patience, how+": empty nodes to leave", m.left("default"))
	}
}

// spread fails until the pods of a Deployment are on the given number of nodes and zones, all with the labels.
func (m *manifest) spread(app string, nodes, zones int, labels map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		onNode, inZone := map[string]int{}, map[string]int{}
		for _, pod := range m.pods(app) {
			node := &corev1.Node{}
			if err := m.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
				return err
			}
			onNode[node.Name]++
			inZone[node.Labels[corev1.LabelTopologyZone]]++
			for name, want := range labels {
				if got := node.Labels[name]; got != want {
					return fmt.Errorf("node %s has %s=%q, want %q", node.Name, name, got, want)
				}
			}
		}
		if len(onNode) < nodes || len(inZone) < zones {
			return fmt.Errorf("pods are on the nodes %v in the zones %v, want %d nodes and %d zones or more", onNode, inZone, nodes, zones)
		}
		return nil
	}
}

// soon reports whether a test can wait for the removal of an empty node.
func soon(empty string) bool {
	d, err := time.ParseDuration(empty)
	return empty == "at once" || err == nil && d <= time.Minute
}

// applyText creates the objects of a manifest.
func (m *manifest) applyText(text string) []*unstructured.Unstructured {
	m.t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := yamlstream.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			m.t.Fatal(err)
		}
		if len(object.Object) > 0 {
			if strings.HasPrefix(object.GetAPIVersion(), "apps/") {
				object.SetNamespace(m.stage.name)
			}
			m.create(object)
			objects = append(objects, object)
		}
	}
}

// migrated returns the output of the verb for a manifest.
func (m *manifest) migrated(text string) string {
	m.t.Helper()
	command := exec.CommandContext(m.t.Context(), plugin, "migrate", "-f", "-", "--cluster-name=workshop", "--kubernetes-version=1.36")
	command.Stdin = strings.NewReader(text)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		m.t.Fatalf("kubectl karpenter migrate: %v\n%s", err, said.String())
	}
	return out.String()
}

// workload returns a Deployment without pods that runs only on the nodes of a pool, and selects it as in versions
// before v1.
func (m *manifest) workload(pool string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: m.stage.name, Name: pool}}
	app := map[string]string{"app": pool}
	d.Spec.Replicas, d.Spec.Selector, d.Spec.Template.Labels = new(int32(0)), &metav1.LabelSelector{MatchLabels: app}, app
	spec := &d.Spec.Template.Spec
	spec.TerminationGracePeriodSeconds = new(int64(0))
	spec.NodeSelector = map[string]string{karpv1.LabelNodePool: pool}
	if strings.HasPrefix(m.name, "v1alpha") {
		spec.NodeSelector = map[string]string{"karpenter.sh/provisioner-name": pool}
	}
	// The taint of nodes that have not joined yet is not tolerated.
	for _, taint := range append(slices.Clone(m.expected[pool].Taints), m.expected[pool].Startup...) {
		key, _, _ := strings.Cut(taint[:strings.LastIndexByte(taint, ':')], "=")
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("256Mi")}
	spec.Containers = []corev1.Container{{Name: "pause", Image: "pause:3.10", Resources: corev1.ResourceRequirements{Requests: requests}}}
	return d
}

// claims returns the claims of a pool.
func (m *manifest) claims(ctx context.Context, pool string) ([]karpv1.NodeClaim, error) {
	list := &karpv1.NodeClaimList{}
	err := m.List(ctx, list, client.MatchingLabels{karpv1.LabelNodePool: pool})
	return list.Items, err
}

// left fails until the pool has no claim.
func (m *manifest) left(pool string) func(context.Context) error {
	return func(ctx context.Context) error {
		claims, err := m.claims(ctx, pool)
		if err == nil && len(claims) > 0 {
			err = fmt.Errorf("%d claims are there", len(claims))
		}
		return err
	}
}

// gone fails while an object exists.
func (m *manifest) gone(object client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		err := m.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("it is there")
		}
		return client.IgnoreNotFound(err)
	}
}

// check compares the node that the pool launched with the expected one, and describes it.
func (m *manifest) check(pool string, want expectation, how string) string {
	m.t.Helper()
	claim, node := karpv1.NodeClaim{}, &corev1.Node{}
	// Its pod may have been replaced: taint eviction may be late.
	await(m.t, patience, how+": "+pool+" to have one node", func(ctx context.Context) error {
		claims, err := m.claims(ctx, pool)
		if err != nil {
			return err
		}
		if len(claims) != 1 || claims[0].Status.NodeName == "" {
			return fmt.Errorf("%d claims are there, want one with a node", len(claims))
		}
		claim = claims[0]
		return m.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)
	})
	for _, choice := range []struct {
		label string
		among []string
	}{
		{karpv1.LabelCapacityType, want.Capacity}, {corev1.LabelInstanceTypeStable, want.Types}, {corev1.LabelArchStable, want.Arch},
		{"karpenter.k8s.aws/instance-family", want.Families}, {"karpenter.k8s.aws/instance-category", want.Categories}, {corev1.LabelTopologyZone, want.Zones},
	} {
		for i := range choice.among {
			choice.among[i] = here.Replace(choice.among[i])
		}
		if got := node.Labels[choice.label]; len(choice.among) > 0 && !slices.Contains(choice.among, got) {
			m.t.Errorf("%s: the node of %s has %s=%s, want one of %v", how, pool, choice.label, got, choice.among)
		}
	}
	m.checkBounds(pool, want, node, how)
	for name, value := range want.Labels {
		if node.Labels[name] != value {
			m.t.Errorf("%s: the node of %s has %s=%q, want %q", how, pool, name, node.Labels[name], value)
		}
	}
	if expire := claim.Spec.ExpireAfter.String(); want.Expire != "" && !sameTime(expire, want.Expire) {
		m.t.Errorf("%s: the node of %s expires after %s, want %s", how, pool, expire, want.Expire)
	}
	m.checkTaints(pool, want, node, how)
	for _, instance := range m.world.sim.Instances() {
		if want.Profile == "" || !strings.HasSuffix(claim.Status.ProviderID, instance.ID) {
			continue
		}
		if got := instance.Profile; got != want.Profile && !strings.HasSuffix(got, "/"+want.Profile) {
			m.t.Errorf("%s: the instance of %s has the profile %s, want %s", how, pool, got, want.Profile)
		}
	}
	if want.MaxPods != "" && node.Status.Capacity.Pods().String() != want.MaxPods {
		m.t.Errorf("%s: the node of %s takes %s pods, want %s", how, pool, node.Status.Capacity.Pods(), want.MaxPods)
	}
	return strings.Join([]string{node.Labels[corev1.LabelInstanceTypeStable], node.Labels[karpv1.LabelCapacityType]}, " ")
}

func sameTime(a, b string) bool {
	x, err := time.ParseDuration(a)
	if err != nil {
		return a == b
	}
	y, err := time.ParseDuration(b)
	return err == nil && x == y
}

func (m *manifest) checkBounds(pool string, want expectation, node *corev1.Node, how string) {
	m.t.Helper()
	for _, bound := range []struct {
		label, limit string
		over         bool
	}{{"karpenter.k8s.aws/instance-cpu", want.CPUOver, true}, {"karpenter.k8s.aws/instance-cpu", want.CPUUnder, false}, {"karpenter.k8s.aws/instance-generation", want.Generation, true}} {
		if bound.limit == "" {
			continue
		}
		limit, wrong := strconv.Atoi(bound.limit)
		got, err := strconv.Atoi(node.Labels[bound.label])
		if wrong != nil || err != nil {
			m.t.Errorf("%s: the node of %s has %s=%s, want a number as the bound %s: %v",
				how, pool, bound.label, node.Labels[bound.label], bound.limit, errors.Join(wrong, err))
			continue
		}
		if got == limit || got > limit != bound.over {
			m.t.Errorf("%s: the node of %s has %s=%d, want it on the right side of %d", how, pool, bound.label, got, limit)
		}
	}
}

// checkTaints checks the taints, and removes the startup taints.
func (m *manifest) checkTaints(pool string, want expectation, node *corev1.Node, how string) {
	m.t.Helper()
	var have []string
	kept := []corev1.Taint{}
	for _, taint := range node.Spec.Taints {
		text := taint.Key + ":" + string(taint.Effect)
		if taint.Value != "" {
			text = taint.Key + "=" + taint.Value + ":" + string(taint.Effect)
		}
		have = append(have, text)
		if !slices.Contains(want.Startup, text) {
			kept = append(kept, taint)
		}
	}
	for _, taint := range append(slices.Clone(want.Taints), want.Startup...) {
		if !slices.Contains(have, taint) {
			m.t.Errorf("%s: the node of %s has the taints %v, want %s", how, pool, have, taint)
		}
	}
	if len(want.Startup) > 0 {
		changed := node.DeepCopy()
		changed.Spec.Taints = kept
		if err := m.Patch(m.t.Context(), changed, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
			m.t.Fatal(err)
		}
	}
}
