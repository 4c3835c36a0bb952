package upkeep

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

func classesAndClaims(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(awsv1.AddToScheme(scheme), karpv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// TestProfiles checks that a profile is deleted an hour after its last use by the status of a class or a claim.
func TestProfiles(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		var classes []*awsv1.EC2NodeClass
		for _, name := range []string{"current", "old", "gone"} {
			class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
				Spec: awsv1.EC2NodeClassSpec{Role: "KarpenterNodeRole-sandbox"}}
			profile, err := w.sources.Profiles.Ensure(ctx, class)
			w.Must(err)
			class.Status.InstanceProfile = profile
			classes = append(classes, class)
		}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "old-1",
			Annotations: map[string]string{awsv1.AnnotationInstanceProfile: classes[1].Status.InstanceProfile}}}
		api := classesAndClaims(t, classes[0], claim)
		var deleted []string
		profiles := &Profiles{Client: api, Unused: w.sources.Profiles.Collect,
			Deleted: func(names []string) { deleted = append(deleted, names...) }}
		w.Must(profiles.Collect(ctx))
		w.Pass(59 * time.Minute)
		w.Must(profiles.Collect(ctx))
		if deleted != nil {
			t.Errorf("after 59 minutes %v are deleted", deleted)
		}
		w.Pass(time.Minute)
		w.Must(profiles.Collect(ctx))
		if !slices.Equal(deleted, []string{classes[2].Status.InstanceProfile}) {
			t.Errorf("deleted %v, want that of the deleted class", deleted)
		}
		w.Must(api.Delete(ctx, claim))
		w.Must(profiles.Collect(ctx))
		w.Pass(time.Hour)
		w.Must(profiles.Collect(ctx))
		left, err := w.IAM.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
		w.Must(err)
		if len(left.InstanceProfiles) != 1 || *left.InstanceProfiles[0].InstanceProfileName != classes[0].Status.InstanceProfile {
			t.Errorf("%v remain, want only that of the class", left.InstanceProfiles)
		}
	})
}

// tagged is a request of a Tagger.
type tagged struct {
	id   string
	tags map[string]string
}

// TestTagger checks that the instance of a claim with a node is tagged once, that others are not, and that an error is
// retried.
func TestTagger(t *testing.T) {
	claimWith := func(change func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pool-1"}}
		claim.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
		claim.Status.ProviderID, claim.Status.NodeName = "aws:///us-east-1a/i-1", "ip-10-0-0-1.ec2.internal"
		if change != nil {
			change(claim)
		}
		return claim
	}
	throttled := errors.New("throttled")
	done := map[string]string{awsv1.AnnotationTagged: "true", awsv1.AnnotationClusterNameTagged: "true"}
	want := []tagged{{"aws:///us-east-1a/i-1", map[string]string{"Name": "ip-10-0-0-1.ec2.internal",
		"karpenter.sh/nodeclaim": "pool-1", "eks:eks-cluster-name": "sandbox"}}}
	for _, test := range []struct {
		name   string
		claim  *karpv1.NodeClaim
		answer error
		want   []tagged
		noted  bool
		err    error
	}{
		{"a claim with a node", claimWith(nil), nil, want, true, nil},
		{"no node yet", claimWith(func(c *karpv1.NodeClaim) { c.Status.NodeName = "" }), nil, nil, false, nil},
		{"no instance yet", claimWith(func(c *karpv1.NodeClaim) { c.Status.ProviderID = "" }), nil, nil, false, nil},
		{"of another cloud", claimWith(func(c *karpv1.NodeClaim) { c.Spec.NodeClassRef.Group = "karpenter.kwok.sh" }), nil, nil, false, nil},
		{"done", claimWith(func(c *karpv1.NodeClaim) { c.Annotations = done }), nil, nil, true, nil},
		{"done by Karpenter before 1.0", claimWith(func(c *karpv1.NodeClaim) { c.Annotations = map[string]string{awsv1.AnnotationTagged: "true"} }), nil, want, true, nil},
		{"the instance is gone", claimWith(nil), cloud.ErrNotFound, want, false, nil},
		{"throttled", claimWith(nil), throttled, want, false, throttled},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := classesAndClaims(t, test.claim)
			var got []tagged
			tagger := &Tagger{Client: api, Cluster: "sandbox", Tag: func(_ context.Context, id string, tags map[string]string) error {
				got = append(got, tagged{id, tags})
				return test.answer
			}}
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(test.claim)}
			if _, err := tagger.Reconcile(t.Context(), request); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(tagged{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			now := &karpv1.NodeClaim{}
			if err := api.Get(t.Context(), request.NamespacedName, now); err != nil {
				t.Fatal(err)
			}
			if noted := now.Annotations[awsv1.AnnotationTagged] == "true" && now.Annotations[awsv1.AnnotationClusterNameTagged] == "true"; noted != test.noted {
				t.Errorf("annotations %v, want the tagging recorded: %t", now.Annotations, test.noted)
			}
		})
	}
	tagger := &Tagger{Client: classesAndClaims(t)}
	if _, err := tagger.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "gone"}}); err != nil {
		t.Errorf("a claim that is gone: %v", err)
	}
}
