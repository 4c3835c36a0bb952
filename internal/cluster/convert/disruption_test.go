package convert

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

const agedText = `
metadata:
  name: pool-aged
  uid: c9
  creationTimestamp: "2026-11-20T09:00:00Z"
  annotations: {karpenter-go.github.io/pods: u1 u2, karpenter-go.github.io/bought-by: underutilized, karpenter-go.github.io/consolidated: "2026-11-20T09:30:00Z", karpenter-go.github.io/expecting: "2026-11-20T09:40:00Z"}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  terminationGracePeriod: 1h
  expireAfter: 24h
status:
  providerID: kwok://aged
  conditions:
  - {type: Drifted, status: "True", reason: NodePoolDrifted, lastTransitionTime: "2026-11-20T09:05:00Z"}
`

const pdbText = `
metadata: {name: web, namespace: shop, uid: b1, generation: 2}
spec:
  selector: {matchLabels: {app: web}}
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
status: {observedGeneration: 2, disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3}
`

// life holds the fields of a node that state why it was created and when it ends.
type life struct {
	Drifted                     string
	Since, ExpiresAt, Sent, Due time.Time
	Bounded, Replaces           bool
	LaunchedFor                 []model.PodRef
}

func TestLifeOfANode(t *testing.T) {
	created := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	whole := life{Drifted: "NodePoolDrifted", Since: created.Add(5 * time.Minute), ExpiresAt: created.Add(24 * time.Hour),
		Sent: created.Add(30 * time.Minute), Due: created.Add(40 * time.Minute),
		Bounded: true, Replaces: true, LaunchedFor: []model.PodRef{{UID: "u1"}, {UID: "u2"}}}
	for name, c := range map[string]struct {
		from, to string
		want     func(*life)
	}{
		"everything":  {"", "", func(*life) {}},
		"initialized": {"status:\n", "status:\n  nodeName: aged\n", func(*life) {}},
		"not drifted any more": {`Drifted, status: "True"`, `Drifted, status: "False"`,
			func(l *life) { l.Drifted, l.Since = "", time.Time{} }},
		"drifted, no reason": {"reason: NodePoolDrifted, ", "", func(l *life) { l.Drifted = "Drifted" }},
		"never":              {"expireAfter: 24h", "expireAfter: Never", func(l *life) { l.ExpiresAt = time.Time{} }},
		"age not known": {`creationTimestamp: "2026-11-20T09:00:00Z"`, "generation: 1",
			func(l *life) { l.ExpiresAt = time.Time{} }},
		"no end to the drain": {"terminationGracePeriod: 1h", "taints: []", func(l *life) { l.Bounded = false }},
		"bought for pods":     {"bought-by: underutilized", "bought-by: provisioned", func(l *life) { l.Replaces = false }},
		"bought for drift":    {"bought-by: underutilized", "bought-by: drifted", func(l *life) { l.Replaces = false }},
		"bought for a pod that leaves": {"pods: u1 u2", "pods: u1 u2/set",
			func(l *life) { l.LaunchedFor = []model.PodRef{{UID: "u1"}, {UID: "u2", Controller: "set"}} }},
		"pods came by themselves": {`, karpenter-go.github.io/consolidated: "2026-11-20T09:30:00Z"`, "",
			func(l *life) { l.Sent = time.Time{} }},
		"pods came at an unknown time": {`"2026-11-20T09:30:00Z"`, "yes", func(l *life) { l.Sent = time.Time{} }},
		"no pod is expected": {`, karpenter-go.github.io/expecting: "2026-11-20T09:40:00Z"`, "",
			func(l *life) { l.Due = time.Time{} }},
		"expected since an unknown time": {`"2026-11-20T09:40:00Z"`, "soon", func(l *life) { l.Due = time.Time{} }},
		"launched for no pod":            {"pods: u1 u2", "pods: ' '", func(l *life) { l.LaunchedFor = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(agedText, c.from, c.to, 1)
			if text == agedText && c.from != "" {
				t.Fatalf("%q is not in the fixture", c.from)
			}
			n, refused := Node(nil, decode[karpv1.NodeClaim](t, text), words())
			if refused != nil {
				t.Fatal(refused)
			}
			want := whole
			c.want(&want)
			if diff := cmp.Diff(want, lifeOf(n)); diff != "" {
				t.Errorf("life (-want +got):\n%s", diff)
			}
		})
	}
}

func lifeOf(n model.NodeSpec) life {
	return life{n.Drifted, n.DriftedSince, n.ExpiresAt, n.ConsolidatedAt, n.PodsSentAt, n.DrainBounded,
		n.Replacement, n.LaunchedFor}
}

// TestLaunchedForStays checks that the pods that a claim was launched for are known in every stage.
func TestLaunchedForStays(t *testing.T) {
	node := decode[corev1.Node](t, strings.NewReplacer("LABELS", "karpenter.sh/initialized: 'true'", "kwok://node-1",
		"kwok://aged").Replace(nodeText))
	n, _ := Node(node, decode[karpv1.NodeClaim](t, agedText), words())
	switch {
	case n.Stage != model.Initialized:
		t.Errorf("n.Stage is %v, want %v", n.Stage, model.Initialized)
	case len(n.LaunchedFor) != 2:
		t.Errorf("len(n.LaunchedFor) is %v, want 2, launched for %v", len(n.LaunchedFor), n.LaunchedFor)
	}
}

func TestPodReady(t *testing.T) {
	for status, want := range map[string]bool{
		"": false, "\nstatus: {conditions: [{type: Ready, status: 'False'}]}": false,
		"\nstatus: {conditions: [{type: ContainersReady, status: 'True'}]}":                                 false,
		"\nstatus: {conditions: [{type: ContainersReady, status: 'False'}, {type: Ready, status: 'True'}]}": true,
	} {
		if spec, _ := Pod(decode[corev1.Pod](t, "spec: {nodeName: n}"+status), words(), nil); spec.Ready != want {
			t.Errorf("%q: ready %t, want %t", status, spec.Ready, want)
		}
	}
}

func TestPDB(t *testing.T) {
	whole := model.PDBSpec{UID: "b1", Namespace: "shop", Name: "web", Allowed: 1, AlwaysEvictUnready: true, Healthy: true,
		Selector: model.Selector{Namespaces: []string{"shop"},
			Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{"web"}}}}}
	for name, c := range map[string]struct {
		from, to string
		want     func(*model.PDBSpec)
	}{
		"as it is":       {"", "", func(*model.PDBSpec) {}},
		"empty selector": {"{matchLabels: {app: web}}", "{}", func(p *model.PDBSpec) { p.Selector.Requirements = nil }},
		"no selector": {"selector: {matchLabels: {app: web}}", "",
			func(p *model.PDBSpec) { p.Selector = model.Selector{Nothing: true} }},
		"status behind":        {"observedGeneration: 2", "observedGeneration: 1", func(p *model.PDBSpec) { p.Allowed = 0 }},
		"less than nothing":    {"disruptionsAllowed: 1", "disruptionsAllowed: -1", func(p *model.PDBSpec) { p.Allowed = 0 }},
		"policy of its own":    {"AlwaysAllow", "IfHealthyBudget", func(p *model.PDBSpec) { p.AlwaysEvictUnready = false }},
		"no policy":            {"unhealthyPodEvictionPolicy: AlwaysAllow", "", func(p *model.PDBSpec) { p.AlwaysEvictUnready = false }},
		"not healthy":          {"currentHealthy: 3", "currentHealthy: 1", func(p *model.PDBSpec) { p.Healthy = false }},
		"wants no healthy pod": {"desiredHealthy: 2", "desiredHealthy: 0", func(p *model.PDBSpec) { p.Healthy = false }},
		"none unavailable":     {"maxUnavailable: 1", "maxUnavailable: 0", func(p *model.PDBSpec) { p.Blocking = true }},
		"0% unavailable":       {"maxUnavailable: 1", "maxUnavailable: 0%", func(p *model.PDBSpec) { p.Blocking = true }},
		"all there are":        {"desiredHealthy: 2", "desiredHealthy: 3", func(p *model.PDBSpec) { p.Full = true }},
		"all, status behind": {"observedGeneration: 2, disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2",
			"observedGeneration: 1, desiredHealthy: 3, currentHealthy: 3", func(p *model.PDBSpec) { p.Allowed = 0 }},
		"none there":             {"desiredHealthy: 2, expectedPods: 3", "desiredHealthy: 2, expectedPods: 0", func(*model.PDBSpec) {}},
		"10% unavailable":        {"maxUnavailable: 1", "maxUnavailable: 10%", func(*model.PDBSpec) {}},
		"unavailable, no number": {"maxUnavailable: 1", "maxUnavailable: '%'", func(*model.PDBSpec) {}},
		"all available":          {"maxUnavailable: 1", "minAvailable: 100%", func(p *model.PDBSpec) { p.Blocking = true }},
		"99% available":          {"maxUnavailable: 1", "minAvailable: 99%", func(*model.PDBSpec) {}},
		"100 available":          {"maxUnavailable: 1", "minAvailable: 100", func(*model.PDBSpec) {}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(pdbText, c.from, c.to, 1)
			if text == pdbText && c.from != "" {
				t.Fatalf("%q is not in the fixture", c.from)
			}
			want := whole
			c.want(&want)
			if diff := cmp.Diff(want, PDB(decode[policyv1.PodDisruptionBudget](t, text))); diff != "" {
				t.Errorf("PodDisruptionBudget (-want +got):\n%s", diff)
			}
		})
	}
}

// economicsOf holds the economics of a pool.
type economicsOf struct {
	payback, stay time.Duration
	move, saving  int64
	blocked       string
	share         int64
}

func TestEconomicsOfPool(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        economicsOf
	}{
		"nothing said": {nil, economicsOf{}},
		"share":        {map[string]string{"max-spot-share": "25%"}, economicsOf{share: 25}},
		"no share": {map[string]string{"max-spot-share": "half"},
			economicsOf{saving: neverPays, blocked: `max-spot-share]: "half" is not such a share; it is an integer`}},
		"all said": {map[string]string{"payback": "90m", "min-stay": "5m", "move-price": "0.002", "min-saving": "0.05"},
			economicsOf{90 * time.Minute, 5 * time.Minute, 2_000_000, 50_000_000, "", 0}},
		"zero is nothing": {map[string]string{"payback": "0s", "min-stay": "0", "move-price": "0", "min-saving": "0.0"},
			economicsOf{-1, -1, -1, -1, "", 0}},
		"payback": {map[string]string{"payback": "soon"},
			economicsOf{0, 0, 0, neverPays, `payback]: "soon" is not such a time; it is a duration`, 0}},
		"stay": {map[string]string{"min-stay": "long"},
			economicsOf{0, 0, 0, neverPays, `min-stay]: "long" is not such a time; it is a duration`, 0}},
		"negative time": {map[string]string{"payback": "-1h"}, economicsOf{0, 0, 0, neverPays, `"-1h" is not such a time`, 0}},
		"too long":      {map[string]string{"payback": "9000h"}, economicsOf{0, 0, 0, neverPays, `zero to 8760h`, 0}},
		"move price": {map[string]string{"move-price": "0,5", "payback": "2h"},
			economicsOf{2 * time.Hour, 0, 0, neverPays, `move-price]: "0,5" is not a price; it is USD per pod`, 0}},
		"saving": {map[string]string{"min-saving": "NaN"},
			economicsOf{0, 0, 0, neverPays, `min-saving]: "NaN" is not a price; it is USD per hour`, 0}},
		"the first named": {map[string]string{"min-saving": "x", "payback": "y"}, economicsOf{0, 0, 0, neverPays, `payback]`, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			pool := decode[karpv1.NodePool](t, poolText)
			pool.Annotations = map[string]string{}
			for key, value := range c.annotations {
				pool.Annotations[karpv1.OwnAnnotationPrefix+key] = value
			}
			spec := Pool(pool, words())
			got := economicsOf{payback: spec.Payback, stay: spec.MinStay, move: spec.MovePrice, saving: spec.MinSaving, share: spec.MaxSpotShare}
			if spec.Blocked != nil {
				got.blocked = spec.Blocked.Field + ": " + spec.Blocked.Reason
			}
			if !strings.Contains(got.blocked, c.want.blocked) || (got.blocked == "") != (c.want.blocked == "") {
				t.Errorf("blocked %q, want %q", got.blocked, c.want.blocked)
			}
			got.blocked, c.want.blocked = "", ""
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			invalid := slices.ContainsFunc(karpv1.Validate(pool, words().Rules),
				func(err *field.Error) bool { return strings.HasPrefix(err.Field, "metadata.annotations") })
			if invalid != (spec.Blocked != nil) {
				t.Errorf("validation refuses: %t, the pool is blocked by %+v", invalid, spec.Blocked)
			}
		})
	}
}

func TestStaticPool(t *testing.T) {
	pool := decode[karpv1.NodePool](t, poolText)
	if spec := Pool(pool, words()); spec.Static || spec.Replicas != 0 {
		t.Errorf("static %t with %d replicas", spec.Static, spec.Replicas)
	}
	pool.Spec.Replicas = new(int64(0))
	if spec := Pool(pool, words()); !spec.Static || spec.Replicas != 0 {
		t.Errorf("static %t, replicas %d", spec.Static, spec.Replicas)
	}
	pool.Spec.Replicas = new(int64(4))
	spec := Pool(pool, words())
	if !spec.Static || spec.Replicas != 4 {
		t.Errorf("static %t with %d replicas", spec.Static, spec.Replicas)
	}
	for _, test := range []struct {
		name     string
		catalog  *model.Catalog
		blocked  *model.Rejection
		field    string
		standing bool
	}{
		{"in order", &model.Catalog{Types: []model.InstanceType{{Name: "a"}}}, nil, "spec.replicas", true},
		{"nothing to buy", nil, nil, "spec.template", false},
		{"not ready", &model.Catalog{Types: []model.InstanceType{{Name: "a"}}}, &model.Rejection{Field: "status"}, "status", false},
	} {
		spec := spec
		spec.Blocked = test.blocked
		AddCatalog(&spec, test.catalog, "why")
		switch {
		case spec.Blocked == nil:
			t.Errorf("%s: spec.Blocked is nil", test.name)
		case spec.Blocked.Field != test.field:
			t.Errorf("%s: spec.Blocked.Field is %v, want %v", test.name, spec.Blocked.Field, test.field)
		case spec.Standing() != test.standing:
			t.Errorf("%s: spec.Standing() is %v, want %v", test.name, spec.Standing(), test.standing)
		}
	}
}

// TestEndOfADrain checks that the end of the drain is that of the claim's annotation, else of its grace period, in
// UTC.
func TestEndOfADrain(t *testing.T) {
	const annotations = "  annotations: {"
	for _, test := range []struct{ name, from, to, want string }{
		{"it is not deleted", "", "", ""},
		{"deleted", "  uid: c9\n", "  uid: c9\n  deletionTimestamp: \"2026-11-20T10:00:00Z\"\n", "2026-11-20T11:00:00Z"},
		{"interrupted", annotations, annotations + `karpenter.sh/nodeclaim-termination-timestamp: "2026-11-20T11:02:00+01:00", `,
			"2026-11-20T10:02:00Z"},
		{"no time", annotations, annotations + `karpenter.sh/nodeclaim-termination-timestamp: soon, `, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, refused := Node(nil, decode[karpv1.NodeClaim](t, strings.Replace(agedText, test.from, test.to, 1)), words())
			if refused != nil {
				t.Fatal(refused)
			}
			got := ""
			if !n.DrainEnds.IsZero() {
				got = n.DrainEnds.Format(time.RFC3339)
			}
			if got != test.want {
				t.Errorf("the drain ends at %q, want %q", got, test.want)
			}
		})
	}
}
