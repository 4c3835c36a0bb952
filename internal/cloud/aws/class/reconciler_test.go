package class

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

// TestReady checks that a class becomes ready in one reconciliation, that only its profile is created, and that AWS is
// not called again before the intervals have passed.
func TestReady(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		class, result, err := w.reconcile(ctx)
		w.Must(err)
		expect(t, "at once", class, "Ready", "True Ready")
		switch {
		case !controllerutil.ContainsFinalizer(class, awsv1.FinalizerTermination):
			t.Errorf("finalizers %v: controllerutil.ContainsFinalizer(class, awsv1.FinalizerTermination) is false", class.Finalizers)
		case class.Annotations[awsv1.AnnotationNodeClassHash] != class.Hash():
			t.Errorf("finalizers %v: class.Annotations[awsv1.AnnotationNodeClassHash] is %v, want %v", class.Finalizers,
				class.Annotations[awsv1.AnnotationNodeClassHash], class.Hash())
		case class.Annotations[awsv1.AnnotationNodeClassHashVersion] != awsv1.HashVersion:
			t.Errorf("finalizers %v: class.Annotations[awsv1.AnnotationNodeClassHashVersion] is %v, want %v", class.Finalizers,
				class.Annotations[awsv1.AnnotationNodeClassHashVersion], awsv1.HashVersion)
		}
		status := &class.Status
		switch {
		case len(status.Subnets) < 5:
			t.Errorf("len(status.Subnets) is %v, want at least 5, status %+v", len(status.Subnets), status)
		case len(status.SecurityGroups) != 1:
			t.Errorf("len(status.SecurityGroups) is %v, want 1, status %+v", len(status.SecurityGroups), status)
		case len(status.AMIs) != 5:
			t.Errorf("len(status.AMIs) is %v, want 5, status %+v", len(status.AMIs), status)
		case status.InstanceProfile == "":
			t.Errorf(`status.InstanceProfile is "", status %+v`, status)
		case result.RequeueAfter != time.Minute:
			t.Errorf("result.RequeueAfter is %v, want %v", result.RequeueAfter, time.Minute)
		}
		if made, err := w.EC2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{}); err != nil || len(made.LaunchTemplates) != 0 {
			t.Errorf("launch templates were created: %+v, %v", made, err)
		}
		for minute := 1; minute <= 30; minute++ {
			w.Pass(time.Minute)
			w.Observed = nil
			version := class.ResourceVersion
			if class = w.reconciled(ctx); class.ResourceVersion != version {
				t.Fatalf("minute %d: the class was written although nothing changed", minute)
			}
			for operation, every := range map[string]int{"DescribeSubnets": 1, "DescribeImages": 5, "DescribeSecurityGroups": 5,
				"RunInstances": 30, "CreateFleet": 30, "GetInstanceProfile": 15} {
				if asked := w.Count(operation) > 0; asked != (minute%every == 0) {
					t.Errorf("minute %d: %s called: %v, want every %d minutes", minute, operation, asked, every)
				}
			}
		}
	}, awstest.Class(nil))
}

// TestNothingFound checks that a selector without a match is reported, makes the class unready, and is retried each
// minute.
func TestNothingFound(t *testing.T) {
	nowhere := map[string]string{"no": "where"}
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		class := w.reconciled(ctx)
		expect(t, "no subnet", class, awsv1.ConditionSubnetsReady, "False SubnetsNotFound")
		expect(t, "no group", class, awsv1.ConditionSecurityGroupsReady, "False SecurityGroupsNotFound")
		expect(t, "no image", class, awsv1.ConditionAMIsReady, "False AMINotFound")
		expect(t, "no role", class, awsv1.ConditionInstanceProfileReady, "False RoleNotFound")
		expect(t, "nothing", class, awsv1.ConditionValidationSucceeded, "False DependenciesNotReady")
		expect(t, "nothing", class, "Ready", "False UnhealthyDependents")
		w.AWS.AddImage("mine", "x86_64", nowhere)
		w.AWS.AddRole("/", "Missing")
		w.Pass(time.Minute)
		class = w.reconciled(ctx)
		expect(t, "an image was made", class, awsv1.ConditionAMIsReady, "True AMIsReady")
		expect(t, "the role was made", class, awsv1.ConditionInstanceProfileReady, "True InstanceProfileReady")
	}, awstest.Class(func(class *awsv1.EC2NodeClass) {
		family := awsv1.FamilyAL2023
		class.Spec = awsv1.EC2NodeClassSpec{Role: "Missing", AMIFamily: &family, SubnetSelectorTerms: []awsv1.SubnetSelectorTerm{{Tags: nowhere}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: nowhere}},
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Tags: nowhere}}}
	}))
}

// TestAWSDown checks that failed calls leave the conditions as they are, independently of each other, and are returned
// for a retry.
func TestAWSDown(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		throttle := func(action string) {
			_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: action, Code: "RequestLimitExceeded", Status: 503})
			w.Must(err)
		}
		throttle("DescribeSubnets")
		class, _, err := w.reconcile(ctx)
		if discovery.KindOf(err) != discovery.Throttled {
			t.Errorf("error %v, want the throttled call", err)
		}
		expect(t, "subnets are throttled", class, awsv1.ConditionAMIsReady, "True AMIsReady")
		expect(t, "subnets are throttled", class, awsv1.ConditionSubnetsReady, "Unknown AwaitingReconciliation")
		expect(t, "subnets are throttled", class, awsv1.ConditionValidationSucceeded, "Unknown DependenciesNotReady")
		w.AWS.Clear(0)
		expect(t, "afterwards", w.reconciled(ctx), "Ready", "True Ready")
		throttle("")
		w.Pass(time.Hour)
		class, _, err = w.reconcile(ctx)
		if err == nil {
			t.Error("no error although everything is throttled")
		}
		expect(t, "everything is throttled", class, "Ready", "True Ready")
		w.AWS.Clear(0)
		w.AWS.ExpireCredentials("AKIDTEST")
		w.Pass(time.Hour)
		class, _, err = w.reconcile(ctx)
		if discovery.KindOf(err) == "" {
			t.Errorf("error %v, want expired credentials", err)
		}
		expect(t, "credentials have expired", class, "Ready", "True Ready")
	}, awstest.Class(nil))
}

// TestPermissions checks that a denied call is reported in the class, and that the class is ready once the call is
// allowed.
func TestPermissions(t *testing.T) {
	for action, reason := range map[string]string{
		"CreateLaunchTemplate": awsv1.ReasonCreateLaunchTemplateAuthCheckFailed,
		"CreateFleet":          awsv1.ReasonCreateFleetAuthCheckFailed,
		"RunInstances":         awsv1.ReasonRunInstancesAuthCheckFailed,
	} {
		within(t, awssim.Options{}, func(ctx context.Context, w *world) {
			_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: action})
			w.Must(err)
			class := w.reconciled(ctx)
			expect(t, action+" denied", class, awsv1.ConditionValidationSucceeded, "False "+reason)
			if message := class.Condition(awsv1.ConditionValidationSucceeded).Message; !strings.Contains(message, action) {
				t.Errorf("%s denied: message %q does not contain it", action, message)
			}
			w.AWS.Clear(0)
			w.Pass(time.Minute)
			expect(t, action+" allowed", w.reconciled(ctx), "Ready", "True Ready")
		}, awstest.Class(nil))
	}
}

// TestRefusalIsQuiet checks that the class is not written again because of EC2's request ID, which differs in each
// response, and that the write does not trigger another reconciliation. Denied reads are reported too.
func TestRefusalIsQuiet(t *testing.T) {
	for action, condition := range map[string]string{"RunInstances": awsv1.ConditionValidationSucceeded,
		"DescribeSubnets": awsv1.ConditionSubnetsReady,
		"DescribeImages":  awsv1.ConditionAMIsReady, "DescribeSecurityGroups": awsv1.ConditionSecurityGroupsReady,
		"GetInstanceProfile": awsv1.ConditionInstanceProfileReady} {
		within(t, awssim.Options{}, func(ctx context.Context, w *world) {
			_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultDeny, Action: action})
			w.Must(err)
			before, _, _ := w.reconcile(ctx)
			if c := before.Condition(condition); c.IsTrue() || !strings.Contains(c.Message, action+" (request ") {
				t.Errorf("%s is denied: %s is %s %s: %q", action, condition, c.Status, c.Reason, c.Message)
			}
			for range 3 {
				w.Pass(time.Minute)
				if after, _, _ := w.reconcile(ctx); after.ResourceVersion != before.ResourceVersion {
					t.Errorf("%s is denied again: the class was written, %s: %q", action, condition, after.Condition(condition).Message)
				}
			}
			written := before.DeepCopy()
			written.StatusConditions().SetFalse(condition, "Other", "words")
			if changedByOthers(event.UpdateEvent{ObjectOld: before, ObjectNew: written}) {
				t.Error("the status update triggers a reconciliation")
			}
			written.Generation++
			if !changedByOthers(event.UpdateEvent{ObjectOld: before, ObjectNew: written}) {
				t.Error("a change does not trigger a reconciliation")
			}
			w.AWS.Clear(0)
			w.Pass(time.Minute)
			expect(t, action+" is allowed", w.reconciled(ctx), "Ready", "True Ready")
		}, awstest.Class(nil))
	}
}

// TestDryRunWithoutCapacity checks that a lack of capacity for the type or the subnet of the dry runs does not make the class
// unready.
func TestDryRunWithoutCapacity(t *testing.T) {
	for code, want := range map[string]string{
		"Unsupported": "True ValidationSucceeded", "InsufficientFreeAddressesInSubnet": "True ValidationSucceeded",
		"InsufficientInstanceCapacity": "True ValidationSucceeded", "VcpuLimitExceeded": "True ValidationSucceeded",
		"InvalidParameterValue": "False " + awsv1.ReasonRunInstancesAuthCheckFailed,
		"OptInRequired":         "False " + awsv1.ReasonRunInstancesAuthCheckFailed,
	} {
		within(t, awssim.Options{}, func(ctx context.Context, w *world) {
			_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultFail, Service: "ec2", Action: "RunInstances", Code: code, Status: 400})
			w.Must(err)
			expect(t, code, w.reconciled(ctx), awsv1.ConditionValidationSucceeded, want)
		}, awstest.Class(nil))
	}
}

// TestChangeIsTried checks that dry runs that passed are repeated when the class changes, and not before.
func TestChangeIsTried(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		class := w.reconciled(ctx)
		_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "RunInstances"})
		w.Must(err)
		expect(t, "nothing changed", w.reconciled(ctx), "Ready", "True Ready")
		text := "#!/bin/sh\necho changed"
		class.Spec.UserData, class.Generation = &text, 2
		w.Must(w.Client.Update(ctx, class))
		expect(t, "the user data changed", w.reconciled(ctx), awsv1.ConditionValidationSucceeded, "False RunInstancesAuthCheckFailed")
	}, awstest.Class(nil))
}

// TestProfileNotKnown checks that a configured profile that does not exist is reported, and that the controller waits
// for a profile that it has created.
func TestProfileNotKnown(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		class := w.reconciled(ctx)
		for range 2 { // twice, because it must stay between two tries
			expect(t, "the user's", class, awsv1.ConditionValidationSucceeded, "False InstanceProfileNotFound")
			expect(t, "the user's", class, awsv1.ConditionInstanceProfileReady, "False InstanceProfileNotFound")
			w.Pass(time.Minute)
			class = w.reconciled(ctx)
		}
		own, role := "nobodys", "KarpenterNodeRole-sandbox"
		_, err := w.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &own})
		w.Must(err)
		_, err = w.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &own, RoleName: &role})
		w.Must(err)
		w.Pass(time.Minute)
		class = w.reconciled(ctx)
		expect(t, "it was made", class, awsv1.ConditionInstanceProfileReady, "True InstanceProfileReady")
		expect(t, "it was made", class, "Ready", "True Ready")
	}, awstest.Class(func(class *awsv1.EC2NodeClass) {
		own := "nobodys"
		class.Spec.Role, class.Spec.InstanceProfile = "", &own
	}))
	within(t, awssim.Options{Lag: 10 * time.Second, Seed: 3}, func(ctx context.Context, w *world) {
		waited := false
		for range 60 {
			class, result, err := w.reconcile(ctx)
			w.Must(err) // not an error for a minute
			if result.RequeueAfter >= time.Minute {
				expect(t, "at last", class, "Ready", "True Ready")
				break
			}
			waited = true
			if c := class.Condition(awsv1.ConditionValidationSucceeded); c.IsFalse() {
				t.Fatalf("while EC2 does not know the profile yet: %s %s", c.Reason, c.Message)
			}
			w.Pass(time.Second)
		}
		if !waited {
			t.Error("EC2 knew the profile immediately: choose another seed")
		}
	}, awstest.Class(nil))
}

// TestEnd checks that a class waits for its claims, and that its profiles and launch templates are deleted before the
// finalizer is removed. An AWS error delays that.
func TestEnd(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		class := w.reconciled(ctx)
		if w.bytes[name] < 500 || w.bytes[name] > 5000 {
			t.Errorf("%d bytes of user data", w.bytes[name])
		}
		w.Must(w.Client.Delete(ctx, class))
		_, result, err := w.reconcile(ctx)
		w.Must(err)
		switch {
		case len(w.events) != 1:
			t.Errorf("with a claim: len(w.events) is %v, want 1, events %v", len(w.events), w.events)
		case !strings.HasPrefix(w.events[0], "WaitingOnNodeClaimTermination: waiting for 1 NodeClaims"):
			t.Errorf("with a claim: w.events[0] is %q, want the prefix %q", w.events[0], "WaitingOnNodeClaimTermination: waiting for 1 NodeClaims")
		case result.RequeueAfter != 10*time.Minute:
			t.Errorf("with a claim: result.RequeueAfter is %v, want %v", result.RequeueAfter, 10*time.Minute)
		case w.templates != nil:
			t.Errorf("with a claim: w.templates is %v, want nil", w.templates)
		}
		w.Must(w.Client.Delete(ctx, claimOf("mine", name)))
		id, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultFail, Service: "iam"})
		w.Must(err)
		if class, _, err := w.reconcile(ctx); err == nil || class.Name == "" {
			t.Errorf("IAM is down: %v, and the class %q; want an error, and the class to remain", err, class.Name)
		}
		w.AWS.Clear(id)
		_, _, err = w.reconcile(ctx)
		w.Must(err)
		if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, class); !apierrors.IsNotFound(err) {
			t.Errorf("the class still exists: %v", err)
		}
		profiles, err := w.IAM.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
		w.Must(err)
		switch {
		case len(profiles.InstanceProfiles) != 0:
			t.Errorf("remaining: len(profiles.InstanceProfiles) is %v, want 0, profiles %v", len(profiles.InstanceProfiles),
				profiles.InstanceProfiles)
		case !slices.Equal(w.templates, []string{name}):
			t.Errorf("remaining: w.templates is %v, want %v", w.templates, []string{name})
		case len(w.memory.classes) != 0:
			t.Errorf("remaining: len(w.memory.classes) is %v, want 0, memory %v", len(w.memory.classes), w.memory.classes)
		case w.bytes[name] != 0:
			t.Errorf("remaining: w.bytes[name] is %v, want 0", w.bytes[name])
		}
		_, _, err = w.reconcile(ctx)
		w.Must(err)
	}, awstest.Class(nil), claimOf("mine", name), claimOf("anothers", "another"))
}

// TestProfileNeverKnown checks that a profile that EC2 does not know for more than a minute is an error.
func TestProfileNeverKnown(t *testing.T) {
	within(t, awssim.Options{Lag: 10 * time.Hour, Seed: 3}, func(ctx context.Context, w *world) {
		began := time.Now()
		for time.Since(began) < 10*time.Minute {
			_, result, err := w.reconcile(ctx)
			if err != nil {
				if waited := time.Since(began); waited < time.Minute || waited > 2*time.Minute {
					t.Errorf("an error after %v: %v", waited, err)
				}
				return
			}
			w.Pass(result.RequeueAfter)
		}
		t.Error("no error within ten minutes")
	}, awstest.Class(nil))
}

// TestUnknownUserDataField checks that a field that nodes ignore leaves the class ready, and is reported.
func TestUnknownUserDataField(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		class := w.reconciled(ctx)
		expect(t, "a field that is not known", class, awsv1.ConditionValidationSucceeded, "True UnknownUserDataField")
		expect(t, "a field that is not known", class, "Ready", "True Ready")
		if message := class.Condition(awsv1.ConditionValidationSucceeded).Message; !strings.Contains(message, "spec.kubelet.maxPodsExpr") {
			t.Errorf("message %q does not contain the field", message)
		}
		version := class.ResourceVersion
		w.Pass(time.Minute)
		if class = w.reconciled(ctx); class.ResourceVersion != version {
			t.Error("the class was written although nothing changed")
		}
		class.Spec.UserData, class.Generation = nil, 2
		w.Must(w.Client.Update(ctx, class))
		expect(t, "without it", w.reconciled(ctx), awsv1.ConditionValidationSucceeded, "True ValidationSucceeded")
	}, awstest.Class(func(class *awsv1.EC2NodeClass) {
		text := "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {maxPodsExpr: a}}\n"
		class.Spec.UserData = &text
	}))
}

// TestUnknownTagPlaceholder checks that a tag with text that only looks like a placeholder leaves the class ready, and is
// reported.
func TestUnknownTagPlaceholder(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		profile, role := "nodes", "KarpenterNodeRole-"+awstest.Cluster
		_, err := w.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &profile})
		w.Must(err)
		_, err = w.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &profile, RoleName: &role})
		w.Must(err)
		w.Pass(time.Minute)
		class := w.reconciled(ctx)
		expect(t, "a placeholder that is not known", class, awsv1.ConditionValidationSucceeded, "True UnknownTagPlaceholder")
		expect(t, "a placeholder that is not known", class, "Ready", "True Ready")
		want := "spec.tags: {{nodeclaim}} has no meaning and stays as it is; {{nodepool}}, {{nodeclass}}, {{cluster}} are replaced"
		if message := class.Condition(awsv1.ConditionValidationSucceeded).Message; message != want {
			t.Errorf("message %q, want %q", message, want)
		}
	}, awstest.Class(func(class *awsv1.EC2NodeClass) {
		profile := "nodes" // IAM refuses tags with braces
		class.Spec.Role, class.Spec.InstanceProfile = "", &profile
		class.Spec.Tags = map[string]string{"pool": "{{nodepool}}", "claim": "{{nodeclaim}}"}
	}))
}
