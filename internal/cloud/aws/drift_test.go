package aws

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// drifts are changes of a class and a claim since the launch, and the expected result: a reason or an error.
var drifts = []struct {
	name  string
	class func(*awsv1.EC2NodeClass)
	claim func(*karpv1.NodeClaim)
	want  string
	fails string
}{
	{name: "nothing has changed"},
	{name: "the class has changed", class: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"team": "a"} },
		want: awsv1.ReasonNodeClassDrift},
	{name: "the class has changed, and its stamp is of another making", class: func(c *awsv1.EC2NodeClass) {
		c.Spec.Tags, c.Annotations[awsv1.AnnotationNodeClassHashVersion] = map[string]string{"team": "a"}, "v5"
	}, want: awsv1.ReasonNodeClassDrift},
	{name: "the class's stamp is of another making", class: func(c *awsv1.EC2NodeClass) {
		c.Annotations[awsv1.AnnotationNodeClassHash], c.Annotations[awsv1.AnnotationNodeClassHashVersion] = "1", "v5"
	}},
	{name: "a claim with a hash of another making", claim: hashedBefore, fails: `of version "v5"`},
	{name: "a claim with a hash of another making, known to have drifted", claim: func(c *karpv1.NodeClaim) {
		hashedBefore(c)
		c.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, awsv1.ReasonNodeClassDrift, "")
		c.Status.ImageID = "ami-0aaaaaaaaaaaaaaaa" // otherwise image drift would hide the class's reason
	}, want: awsv1.ReasonNodeClassDrift},
	{name: "a claim with a hash of another making, known to have another image", claim: func(c *karpv1.NodeClaim) {
		hashedBefore(c)
		c.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, awsv1.ReasonAMIDrift, "")
	}, fails: `of version "v5"`},
	{name: "a claim with a hash of another making, and another image", claim: func(c *karpv1.NodeClaim) {
		hashedBefore(c)
		c.Status.ImageID = "ami-0aaaaaaaaaaaaaaaa"
	}, want: awsv1.ReasonAMIDrift},
	{name: "a claim with a hash of another making, and no image found", claim: hashedBefore,
		class: func(c *awsv1.EC2NodeClass) { c.Status.AMIs = nil }, fails: "none of its images is known"},
	{name: "a claim without a hash", claim: func(c *karpv1.NodeClaim) { delete(c.Annotations, awsv1.AnnotationNodeClassHash) },
		fails: "is not updated yet"},
	{name: "another image", claim: func(c *karpv1.NodeClaim) { c.Status.ImageID = "ami-0aaaaaaaaaaaaaaaa" }, want: awsv1.ReasonAMIDrift},
	{name: "another image and class", claim: func(c *karpv1.NodeClaim) { c.Status.ImageID = "ami-0aaaaaaaaaaaaaaaa" },
		class: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"team": "a"} }, want: awsv1.ReasonNodeClassDrift},
	{name: "a type that is not sold", claim: func(c *karpv1.NodeClaim) { c.Labels["node.kubernetes.io/instance-type"] = "x9.huge" },
		fails: `its type "x9.huge" is not known`},
	{name: "no image found", class: func(c *awsv1.EC2NodeClass) { c.Status.AMIs = nil }, fails: "none of its images is known"},
	{name: "another security group", class: func(c *awsv1.EC2NodeClass) { c.Status.SecurityGroups[0].ID = "sg-0aaaaaaaaaaaaaaaa" },
		want: awsv1.ReasonSecurityGroupDrift},
	{name: "a further security group", class: func(c *awsv1.EC2NodeClass) {
		c.Status.SecurityGroups = append(c.Status.SecurityGroups, awsv1.SecurityGroup{ID: "sg-0aaaaaaaaaaaaaaaa"})
	}, want: awsv1.ReasonSecurityGroupDrift},
	{name: "other subnets", class: func(c *awsv1.EC2NodeClass) {
		for i := range c.Status.Subnets {
			c.Status.Subnets[i].ID = "subnet-0aaaaaaaaaaaaaaaa"
		}
	}, want: awsv1.ReasonSubnetDrift},
	{name: "subnets in a zone that does not sell the type", class: func(c *awsv1.EC2NodeClass) {
		c.Status.Subnets = []awsv1.Subnet{{ID: "subnet-0aaaaaaaaaaaaaaaa", Zone: "us-east-1z", ZoneID: "use1-az9"}}
	}, want: awsv1.ReasonSubnetDrift},
	{name: "a machine that is gone", claim: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "aws:///us-east-1a/i-0aaaaaaaaaaaaaaaa" }},
	{name: "a claim that is not launched", claim: func(c *karpv1.NodeClaim) { c.Status.ProviderID = "" }},
}

// Drifted returns the first reason that applies, and an error if drift cannot be determined.
func TestDrifted(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	claim := w.launched(t, p, "drifter")
	for _, test := range drifts {
		t.Run(test.name, func(t *testing.T) {
			drifter := claim.DeepCopy()
			if test.class != nil {
				w.changed(t, test.class)
			}
			if test.claim != nil {
				test.claim(drifter)
			}
			reason, err := p.Drifted(t.Context(), drifter, poolOf("default"))
			switch {
			case reason != test.want:
				t.Errorf("reason is %v, want %v", reason, test.want)
			case (err != nil) != (test.fails != ""):
				t.Errorf("(err != nil) is %v, want %v, %v, and an error about %q", (err != nil), (test.fails != ""), err, test.fails)
			case err != nil && !strings.Contains(err.Error(), test.fails):
				t.Errorf("err != nil && !strings.Contains(err.Error(), test.fails), %v, and an error about %q", err, test.fails)
			}
		})
	}
}

// hashedBefore sets a hash of another version on a claim.
func hashedBefore(c *karpv1.NodeClaim) {
	c.Annotations[awsv1.AnnotationNodeClassHash], c.Annotations[awsv1.AnnotationNodeClassHashVersion] = "1", "v5"
}

// changed modifies the class for the rest of the test.
func (w *world) changed(t *testing.T, change func(*awsv1.EC2NodeClass)) {
	t.Helper()
	original := w.class(t, "default")
	store := func(ctx context.Context, class *awsv1.EC2NodeClass) {
		current := &awsv1.EC2NodeClass{}
		check(t, w.api.Get(ctx, client.ObjectKeyFromObject(class), current))
		status := class.Status
		class.ResourceVersion = current.ResourceVersion
		check(t, w.api.Update(ctx, class))
		class.Status = status
		check(t, w.api.Status().Update(ctx, class))
	}
	class := original.DeepCopy()
	change(class)
	store(t.Context(), class)
	t.Cleanup(func() { store(context.Background(), original) })
}

// EC2 shows an instance some time after its launch. Until then it cannot be read, which is neither drift nor an error.
func TestWhatIsNotShownYetHasNotDrifted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}, Lag: 10 * time.Minute}, "m5.large")
		p := w.provider(t)
		claim := w.claim(t, "young")
		machine, err := p.Launch(t.Context(), claim)
		for range 30 { // its launch template appears late, too
			if err == nil {
				break
			}
			<-time.After(time.Minute)
			machine, err = p.Launch(t.Context(), claim)
		}
		check(t, err)
		claim.Status.ProviderID, claim.Status.ImageID = machine.ProviderID, machine.ImageID
		claim.Labels, claim.Annotations = machine.Labels, machine.Annotations
		if _, err := p.Machine(t.Context(), machine.ProviderID); !errors.Is(err, launch.ErrNotShown) {
			t.Fatalf("reading the machine: got %v, want ErrNotShown", err)
		}
		if reason, err := p.Drifted(t.Context(), claim, poolOf("default")); reason != "" || err != nil {
			t.Errorf("%q, %v; want no drift", reason, err)
		}
	})
}

// Drift of machines that were listed is determined without further calls to EC2.
func TestDriftOfListedMachinesMakesNoCall(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	var claims []*karpv1.NodeClaim
	for _, name := range []string{"a", "b", "c"} {
		claims = append(claims, w.launched(t, p, name))
	}
	if _, err := p.Machines(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.sim.ResetCalls()
	for _, claim := range claims {
		if reason, err := p.Drifted(t.Context(), claim, poolOf("default")); reason != "" || err != nil {
			t.Errorf("%q, %v", reason, err)
		}
	}
	if calls := w.sim.Calls(); len(calls) > 0 {
		t.Errorf("asked %v", calls)
	}
}

// When a class is being deleted, its machines must not be replaced by others of the same class.
func TestClassThatEndsHasNoDrift(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	claim := w.launched(t, p, "last")
	claim.Status.ImageID = "ami-0aaaaaaaaaaaaaaaa"
	check(t, w.api.Delete(t.Context(), w.class(t, "default"))) // its finalizer keeps the object
	if reason, err := p.Drifted(t.Context(), claim, poolOf("default")); reason != "" || err != nil {
		t.Errorf("%q, %v; want no drift", reason, err)
	}
}
