package discovery

import (
	"context"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// With an endpoint that ignores filters, or returns unusual pages, a class finds the same resources, and no foreign
// resource is deleted.
func TestWrongAnswers(t *testing.T) {
	type found struct {
		Subnets []Subnet
		Groups  []Group
		Images  []Image
	}
	find := func(t *testing.T, kind awssim.FaultKind, class *awsv1.EC2NodeClass) (f found) {
		within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
			if kind != "" {
				_, err := w.AWS.Inject(awssim.Fault{Kind: kind})
				w.Must(err)
			}
			var errs [3]error
			f.Subnets, errs[0] = w.Subnets.Find(ctx, class)
			f.Groups, errs[1] = w.Groups.Find(ctx, class)
			f.Images, errs[2] = w.Images.Find(ctx, class, "1.36")
			for _, err := range errs {
				w.Must(err)
			}
		})
		return f
	}
	for name, change := range map[string]func(*awsv1.EC2NodeClassSpec){
		"alias and tags": nil,
		"names and any value of a tag": func(s *awsv1.EC2NodeClassSpec) {
			s.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "*"}}}
			s.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Name: "def*"}}
			s.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: "amazon-eks-node-al2023-x86_64-standard-1.3?-*", Owner: "amazon"}}
		},
	} {
		class := classOf(change)
		want := find(t, "", class)
		switch {
		case len(want.Subnets) == 0:
			t.Fatalf("%s: len(want.Subnets) is 0, found %d", name, len(want.Subnets))
		case len(want.Groups) == 0:
			t.Fatalf("%s: len(want.Groups) is 0, subnets, %d", name, len(want.Groups))
		case len(want.Images) == 0:
			t.Fatalf("%s: len(want.Images) is 0, groups, %d", name, len(want.Images))
		}
		for _, kind := range []awssim.FaultKind{awssim.FaultIgnoreFilters, awssim.FaultOddPages, awssim.FaultUnknownFields} {
			if diff := cmp.Diff(want, find(t, kind, class)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, kind, diff)
			}
		}
	}
}

// The deletion of a class deletes no foreign instance profile if IAM ignores the path in the request.
func TestProfilesOfOthersStay(t *testing.T) {
	within(t, otherRoles, Kubernetes{}, func(ctx context.Context, w *world) {
		_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultIgnoreFilters})
		w.Must(err)
		foreign := "foreign"
		_, err = w.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &foreign})
		w.Must(err)
		class := classOf(nil)
		w.ensured(ctx, class)
		kept := w.ensured(ctx, withUID(classOf(nil), "uid-2"))
		w.Must(w.Profiles.Remove(ctx, class))
		if got, want := w.profiles(ctx), []string{foreign + ":", kept + ":KarpenterNodeRole-sandbox"}; !slices.Equal(got, want) {
			t.Errorf("after the class was removed %v, want %v", got, want)
		}
	})
}
