package class

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

const (
	earlier = "karpenter-go-v1" // hash version of the previous release
	theirs  = "v4"              // hash version of upstream Karpenter
)

// hashedClaim returns a launched claim of the class with the hash "old" of a version. reason is its drift reason, if it
// has drifted.
func hashedClaim(claim, version, reason string) *karpv1.NodeClaim {
	c := claimOf(claim, name)
	c.Annotations = map[string]string{awsv1.AnnotationNodeClassHash: "old", awsv1.AnnotationNodeClassHashVersion: version}
	c.StatusConditions().SetTrue(karpv1.ConditionLaunched)
	if reason != "" {
		c.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, reason, reason)
	}
	return c
}

// with modifies a claim.
func with(claim *karpv1.NodeClaim, change func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
	change(claim)
	return claim
}

// earlierClass returns a class with a hash of the previous release.
func earlierClass() *awsv1.EC2NodeClass {
	return awstest.Class(func(class *awsv1.EC2NodeClass) {
		class.Annotations = map[string]string{awsv1.AnnotationNodeClassHash: "old", awsv1.AnnotationNodeClassHashVersion: earlier}
	})
}

// hashOf returns the hash of a claim, and its version.
func (w *world) hashOf(ctx context.Context, claim string) (hash, version string) {
	w.Helper()
	got := &karpv1.NodeClaim{}
	w.Must(w.Client.Get(ctx, client.ObjectKey{Name: claim}, got))
	return got.Annotations[awsv1.AnnotationNodeClassHash], got.Annotations[awsv1.AnnotationNodeClassHashVersion]
}

// refusing fails writes of a claim with the error that answer returns, until that is nil.
func (w *world) refusing(answer func(claim client.Object) error) {
	w.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if _, is := o.(*karpv1.NodeClaim); is {
				if err := answer(o); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
}

const seven = `{"maxPods":7}`

// stampedClaims returns claims of every kind, and the hash that they must get: old, class, pods (the class with kubelet
// settings for seven pods) or none. Only a hash by which a claim is known to have drifted is kept.
func stampedClaims() map[*karpv1.NodeClaim]string {
	unlaunched := func(c *karpv1.NodeClaim) { c.Status.Conditions = nil }
	unhashed := func(c *karpv1.NodeClaim) { delete(c.Annotations, awsv1.AnnotationNodeClassHash) }
	return map[*karpv1.NodeClaim]string{
		hashedClaim("ours", earlier, ""):                               "class",
		hashedClaim("theirs", theirs, ""):                              "class",
		hashedClaim("current", awsv1.HashVersion, ""):                  "old",
		hashedClaim("drifted", earlier, awsv1.ReasonNodeClassDrift):    "old",
		hashedClaim("image", theirs, awsv1.ReasonAMIDrift):             "class",
		hashedClaim("template", earlier, karpv1.ReasonNodePoolDrifted): "class",
		hashedClaim("requirements", theirs, "RequirementsDrifted"):     "class",
		with(hashedClaim("unhashed", "", ""), unhashed):                "class",
		with(hashedClaim("half", awsv1.HashVersion, ""), unhashed):     "class",
		with(hashedClaim("known", "", "NodeClassDrift"), unhashed):     "class",
		with(hashedClaim("flight", "", ""), unlaunched):                "old",
		with(with(hashedClaim("new", "", ""), unlaunched), unhashed):   "",
		with(hashedClaim("ready-to-launch", earlier, ""), unlaunched):  "old",
		with(hashedClaim("dense", earlier, ""), func(c *karpv1.NodeClaim) { c.Labels = map[string]string{karpv1.LabelNodePool: "dense"} }): "pods",
		with(hashedClaim("lone", earlier, ""), func(c *karpv1.NodeClaim) { c.Annotations[karpv1.AnnotationKubelet] = seven }):              "pods",
		with(hashedClaim("another", earlier, ""), func(c *karpv1.NodeClaim) { c.Spec.NodeClassRef.Name = "another" }):                      "old",
	}
}

// TestStamp checks that launched claims with a hash of another version get the class's hash before the class does, and
// also later, if one appears. The kubelet settings of the pool replace the class's.
func TestStamp(t *testing.T) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "dense", Annotations: map[string]string{karpv1.AnnotationKubelet: seven}}}
	pool.Spec.Template.Spec.NodeClassRef = claimOf("", name).Spec.NodeClassRef
	claims := stampedClaims()
	objects := []client.Object{earlierClass(), pool}
	for claim := range claims {
		objects = append(objects, claim)
	}
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		class := w.reconciled(ctx)
		pods, err := userdata.WithKubelet(class, pool.Annotations)
		w.Must(err)
		w.Must(w.Client.Create(ctx, hashedClaim("late", earlier, "")))
		w.reconciled(ctx)
		claims[claimOf("late", name)] = "class"
		hashes := map[string]string{"class": class.Hash(), "pods": pods.Hash(), "old": "old", "": ""}
		for claim, want := range claims {
			hash, version := w.hashOf(ctx, claim.Name)
			if hash != hashes[want] {
				t.Errorf("claim %s: hash %s, want %s: %s", claim.Name, hash, want, hashes[want])
			}
			left := claim.Annotations[awsv1.AnnotationNodeClassHashVersion]
			switch want {
			case "class", "pods":
				if version != awsv1.HashVersion {
					t.Errorf("claim %s: version %q, want %q", claim.Name, version, awsv1.HashVersion)
				}
			case "":
				if version != left {
					t.Errorf("claim %s: version %q, want %q as before", claim.Name, version, left)
				}
			}
		}
		if _, version := w.hashOf(ctx, "drifted"); version != awsv1.HashVersion {
			t.Errorf("the drifted claim has version %q", version)
		}
		class.Spec.Role, class.Generation = "Other", 2
		w.Must(w.Client.Update(ctx, class))
		w.AWS.AddRole("/", "Other")
		class = w.reconciled(ctx)
		if hash, _ := w.hashOf(ctx, "ours"); class.Annotations[awsv1.AnnotationNodeClassHash] != class.Hash() || hash == class.Hash() {
			t.Error("after a change the class must have the new hash, and its claims must not")
		}
	}, objects...)
}

// TestStampSpoilsNothing checks that a claim that cannot be written affects neither other claims nor other parts of the
// class.
func TestStampSpoilsNothing(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		refused := errors.New("spec.requirements: Invalid value")
		w.refusing(func(claim client.Object) error {
			if claim.GetName() == "bad" {
				return refused
			}
			return nil
		})
		class, _, err := w.reconcile(ctx)
		if !errors.Is(err, refused) || !strings.Contains(err.Error(), "stamping claim bad") {
			t.Errorf("error %v, want %v of the claim bad", err, refused)
		}
		expect(t, "with a claim that cannot be written", class, "Ready", "True Ready")
		if version := class.Annotations[awsv1.AnnotationNodeClassHashVersion]; version != earlier {
			t.Errorf("the class got its hash %q before its claims", version)
		}
		for _, claim := range []string{"a", "z"} {
			if hash, version := w.hashOf(ctx, claim); hash != class.Hash() || version != awsv1.HashVersion {
				t.Errorf("claim %s: hash %s of %s", claim, hash, version)
			}
		}
		refused = nil
		if class = w.reconciled(ctx); class.Annotations[awsv1.AnnotationNodeClassHashVersion] != awsv1.HashVersion {
			t.Error("the class did not get its hash after all its claims")
		}
	}, earlierClass(), hashedClaim("a", earlier, ""), hashedClaim("bad", earlier, ""), hashedClaim("z", earlier, ""))
}

// TestStampOfWhatMoves checks that a concurrent write between the read and the write of a claim is kept, including the
// hash of a launch, and that the claim is processed again.
func TestStampOfWhatMoves(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		api, written := w.Client, false
		w.refusing(func(claim client.Object) error {
			if written {
				return nil
			}
			written = true
			current := &karpv1.NodeClaim{}
			w.Must(api.Get(ctx, client.ObjectKeyFromObject(claim), current))
			current.Annotations[awsv1.AnnotationNodeClassHash], current.Annotations[awsv1.AnnotationNodeClassHashVersion] = "bought",
				awsv1.HashVersion
			w.Must(api.Update(ctx, current))
			return nil
		})
		class, result, err := w.reconcile(ctx)
		w.Must(err)
		expect(t, "with a claim that was written meanwhile", class, "Ready", "True Ready")
		switch hash, _ := w.hashOf(ctx, "moves"); {
		case hash != "bought":
			t.Errorf(`hash is %v, want "bought"`, hash)
		case !written:
			t.Errorf("written is false")
		case result.RequeueAfter != retry:
			t.Errorf("result.RequeueAfter is %v, want %v", result.RequeueAfter, retry)
		}
		w.reconciled(ctx)
		if hash, _ := w.hashOf(ctx, "moves"); hash != "bought" {
			t.Errorf("hash %s after the second reconciliation", hash)
		}
	}, earlierClass(), hashedClaim("moves", earlier, ""))
}

// TestStampIsQuiet checks that invalid settings of a pool are not logged for each of its claims each minute.
func TestStampIsQuiet(t *testing.T) {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "garbled", Annotations: map[string]string{karpv1.AnnotationKubelet: "[]"}}}
	pool.Spec.Template.Spec.NodeClassRef = claimOf("", name).Spec.NodeClassRef
	claim := hashedClaim("mine", earlier, "")
	claim.Labels = map[string]string{karpv1.LabelNodePool: pool.Name}
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		var lines []string
		ctx = ctrl.LoggerInto(ctx, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
		w.reconciled(ctx)
		w.reconciled(ctx)
		switch hash, version := w.hashOf(ctx, "mine"); {
		case hash != "old":
			t.Errorf(`hash is %v, want "old"`, hash)
		case version != earlier:
			t.Errorf("version is %v, want %v", version, earlier)
		case len(lines) > 0:
			t.Errorf("len(lines) is %v, want 0, log %q", len(lines), lines)
		}
	}, earlierClass(), pool, claim)
}
