package discovery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// profiles returns the profiles in IAM, as name:role.
func (w *world) profiles(ctx context.Context) []string {
	w.Helper()
	out, err := w.IAM.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
	w.Must(err)
	var names []string
	for i := range out.InstanceProfiles {
		p := &out.InstanceProfiles[i]
		names = append(names, value(p.InstanceProfileName)+":"+strings.Join(rolesOf(p), "+"))
	}
	return names
}

func (w *world) ensured(ctx context.Context, class *awsv1.EC2NodeClass) string {
	w.Helper()
	name, err := w.Profiles.Ensure(ctx, class)
	w.Must(err)
	return name
}

var otherRoles = awssim.Options{Roles: []string{"Other"}}

// TestProfileIsMadeOnce checks that a profile has its role, tags and path, and that a repeated call, also after a
// restart, creates no other.
func TestProfileIsMadeOnce(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		class := classOf(func(spec *awsv1.EC2NodeClassSpec) {
			spec.Tags = map[string]string{"team": "mine", "of": "{{nodeclass}}/{{cluster}}", "pool": "{{nodepool}}"} // the profile is of no pool
		})
		name := w.ensured(ctx, class)
		if got, want := w.profiles(ctx), []string{name + ":KarpenterNodeRole-sandbox"}; !slices.Equal(got, want) {
			t.Fatalf("profiles %v, want %v", got, want)
		}
		read, err := w.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
		w.Must(err)
		if path := value(read.InstanceProfile.Path); path != "/karpenter/us-east-1/sandbox/uid-1/" {
			t.Errorf("path %s", path)
		}
		var tags []string
		for _, tag := range read.InstanceProfile.Tags {
			tags = append(tags, value(tag.Key)+"="+value(tag.Value))
		}
		if want := []string{"eks:eks-cluster-name=sandbox", "karpenter.k8s.aws/ec2nodeclass=default", "kubernetes.io/cluster/sandbox=owned",
			"of=default/sandbox", "team=mine", "topology.kubernetes.io/region=us-east-1"}; !slices.Equal(tags, want) {
			t.Errorf("tags %v, want %v", tags, want)
		}
		w.Observed = nil
		w.Pass(14 * time.Minute)
		if w.ensured(ctx, class) != name || len(w.Observed) != 0 {
			t.Errorf("called IAM again within 15 minutes: %v", w.Observed)
		}
		w.Profiles.Forget(class)
		if w.ensured(ctx, class) != name || len(w.profiles(ctx)) != 1 {
			t.Errorf("another profile was created: %v", w.profiles(ctx))
		}
		if n := w.Asked("CreateInstanceProfile"); n != 0 {
			t.Errorf("created %d times although it exists", n)
		}
	})
}

// TestProfileWithStaleReads checks that the result is the same if IAM does not show a new profile at first.
func TestProfileWithStaleReads(t *testing.T) {
	within(t, awssim.Options{Lag: 10 * time.Second}, Kubernetes{}, func(ctx context.Context, w *world) {
		var name string
		for range 20 {
			got := w.ensured(ctx, classOf(nil))
			if name != "" && got != name {
				t.Fatalf("profile %s, and then %s", name, got)
			}
			name = got
			w.Profiles.Forget(classOf(nil))
			w.Pass(time.Second)
		}
		w.Pass(time.Minute)
		if got := w.profiles(ctx); len(got) != 1 || got[0] != name+":KarpenterNodeRole-sandbox" {
			t.Errorf("profiles %v, want one with the role", got)
		}
	})
}

// TestProfileAfterLostAnswers checks that after a lost response of any call, the next try continues from the actual
// state.
func TestProfileAfterLostAnswers(t *testing.T) {
	for _, operation := range []string{"GetInstanceProfile", "CreateInstanceProfile", "AddRoleToInstanceProfile"} {
		within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
			_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultLose, Action: operation, Count: 1})
			w.Must(err)
			if _, err := w.Profiles.Ensure(ctx, classOf(nil)); KindOf(err) != Transient {
				t.Errorf("%s: %v, want a transient error", operation, err)
			}
			name := w.ensured(ctx, classOf(nil))
			if got := w.profiles(ctx); len(got) != 1 || got[0] != name+":KarpenterNodeRole-sandbox" {
				t.Errorf("%s: profiles %v, want one with the role", operation, got)
			}
		})
	}
}

// TestProfileRoles checks that a new role has a new profile, that a profile created by upstream Karpenter is kept, that
// a role may have a path, that a wrong role is corrected, and that a role that does not exist is reported, and not read
// again for a minute.
func TestProfileRoles(t *testing.T) {
	within(t, otherRoles, Kubernetes{}, func(ctx context.Context, w *world) {
		class := classOf(nil)
		first := w.ensured(ctx, class)
		class.Status.InstanceProfile = first
		class.Spec.Role = "Other"
		second := w.ensured(ctx, class)
		switch got := w.profiles(ctx); {
		case second == first:
			t.Errorf("second is %v, want another value than %v", second, first)
		case len(got) != 2:
			t.Errorf("len(got) is %v, want 2, profiles %v", len(got), got)
		case !slices.Contains(got, second+":Other"):
			t.Errorf("got lacks %v, profiles %v", second+":Other", got)
		}
		w.AWS.AddRole("/team/", "Pathed")
		class.Spec.Role = "/team/Pathed"
		third := w.ensured(ctx, class)
		w.Pass(time.Hour)
		if again := w.ensured(ctx, class); again != third || len(w.profiles(ctx)) != 3 {
			t.Errorf("a role with a path: %s and then %s, profiles %v", third, again, w.profiles(ctx))
		}
	})
	within(t, otherRoles, Kubernetes{}, func(ctx context.Context, w *world) {
		legacy := "sandbox_123456789"
		_, err := w.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &legacy})
		w.Must(err)
		_, err = w.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &legacy,
			RoleName: aws.String("Other")})
		w.Must(err)
		class := classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.Role = "Other" })
		class.Status.InstanceProfile = legacy
		if name := w.ensured(ctx, class); name != legacy {
			t.Errorf("profile %s, want to keep %s", name, legacy)
		}
		class.Status.InstanceProfile, class.UID = "", "uid-2"
		name := w.ensured(ctx, class)
		w.Must(w.Profiles.removeRole(ctx, name, "Other"))
		_, err = w.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name,
			RoleName: aws.String("KarpenterNodeRole-sandbox")})
		w.Must(err)
		w.Profiles.Forget(class)
		w.ensured(ctx, class)
		if got := w.profiles(ctx); !slices.Contains(got, name+":Other") {
			t.Errorf("profiles %v, want the role of %s to be corrected", got, name)
		}
	})
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		class := classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.Role = "Missing" })
		var missing *RoleNotFoundError
		if _, err := w.Profiles.Ensure(ctx, class); !errors.As(err, &missing) || !strings.Contains(err.Error(), `"Missing"`) {
			t.Errorf("a role that does not exist: %v, want a *RoleNotFoundError", err)
		}
		w.Observed = nil
		if _, err := w.Profiles.Ensure(ctx, class); !errors.As(err, &missing) || len(w.Observed) != 0 {
			t.Errorf("called again immediately: %v, %v", err, w.Observed)
		}
		w.AWS.AddRole("/", "Missing")
		w.Pass(time.Minute)
		w.ensured(ctx, class)
		own := "mine"
		if name := w.ensured(ctx, classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.Role, spec.InstanceProfile = "", &own })); name != own {
			t.Errorf("spec.instanceProfile: %s, want %s", name, own)
		}
	})
}

// TestProfilesGo checks that profiles are deleted with their class, and when they have been unused for an hour, and
// that other profiles are kept.
func TestProfilesGo(t *testing.T) {
	within(t, otherRoles, Kubernetes{}, func(ctx context.Context, w *world) {
		foreign := "foreign"
		_, err := w.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &foreign})
		w.Must(err)
		class, neighbor := classOf(nil), withUID(classOf(nil), "uid-2")
		first := w.ensured(ctx, class)
		class.Spec.Role = "Other"
		w.ensured(ctx, class)
		class.Status.InstanceProfile = foreign // must not be treated as created for the class
		kept := w.ensured(ctx, neighbor)
		w.Must(w.Profiles.Remove(ctx, class))
		if got, want := w.profiles(ctx), []string{foreign + ":", kept + ":KarpenterNodeRole-sandbox"}; !slices.Equal(got, want) {
			t.Errorf("after the class was removed %v, want %v", got, want)
		}
		w.Must(w.Profiles.Remove(ctx, class))

		if name := w.ensured(ctx, class); name == first {
			t.Errorf("the new role has the old profile %s", name)
		}
		collected := func(inUse ...string) []string {
			names := map[string]bool{}
			for _, name := range inUse {
				names[name] = true
			}
			deleted, err := w.Profiles.Collect(ctx, names)
			w.Must(err)
			return deleted
		}
		if got := collected(kept); got != nil {
			t.Errorf("deleted %v when first seen unused", got)
		}
		w.Pass(30 * time.Minute)
		if got := collected(kept, w.ensured(ctx, class)); got != nil {
			t.Errorf("deleted %v, which are used", got)
		}
		w.Pass(30 * time.Minute)
		if got := collected(kept); got != nil {
			t.Errorf("deleted %v, used half an hour ago", got)
		}
		w.Pass(time.Hour)
		if got := collected(kept); len(got) != 1 || len(w.profiles(ctx)) != 2 {
			t.Errorf("deleted %v, %v remain; want one deleted", got, w.profiles(ctx))
		}
	})
}

// TestTwoClassesOfOneRole checks that each class has its own profile, so that the deletion of one class affects neither
// the other one nor a class of another cluster in the account with the same names.
func TestTwoClassesOfOneRole(t *testing.T) {
	within(t, simCluster, Kubernetes{}, func(ctx context.Context, w *world) {
		named := func(name string) *awsv1.EC2NodeClass {
			class := classOf(func(s *awsv1.EC2NodeClassSpec) { s.Role = "a/path/KarpenterNodeRole-sandbox" })
			class.Name, class.UID = name, types.UID("uid-"+name)
			return class
		}
		one, other := named("one"), named("other")
		made := map[string]bool{}
		for _, class := range []*awsv1.EC2NodeClass{one, other} {
			profile, err := w.Profiles.Ensure(ctx, class)
			w.Must(err)
			class.Status.InstanceProfile, made[profile] = profile, true
		}
		if len(made) != 2 {
			t.Fatalf("profiles %v, want one for each class", made)
		}
		// A deleted class refers to a resource of another class: because of an error in its status, or because both
		// have the same role.
		one.Status.InstanceProfile = other.Status.InstanceProfile
		w.Must(w.Profiles.Remove(ctx, one))
		left, err := w.IAM.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
		w.Must(err)
		switch {
		case len(left.InstanceProfiles) != 1:
			t.Errorf("len(left.InstanceProfiles) is %v, want 1, %+v", len(left.InstanceProfiles), left.InstanceProfiles)
		case *left.InstanceProfiles[0].InstanceProfileName != other.Status.InstanceProfile:
			t.Errorf("*left.InstanceProfiles[0].InstanceProfileName is %v, want %v, %+v", *left.InstanceProfiles[0].InstanceProfileName,
				other.Status.InstanceProfile, left.InstanceProfiles)
		case len(left.InstanceProfiles[0].Roles) != 1:
			t.Errorf("len(left.InstanceProfiles[0].Roles) is %v, want 1, %+v", len(left.InstanceProfiles[0].Roles), left.InstanceProfiles)
		}
	})
}
