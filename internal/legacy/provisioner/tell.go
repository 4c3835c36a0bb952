package provisioner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// longestMessage is the maximum length, in bytes, of a condition's message. The API server rejects more than 32768.
const longestMessage = 8192

// report writes the source's status and emits its events.
func (r *Reconciler) report(ctx context.Context, s *source, obstacles []obstacle) error {
	base := s.DeepCopyObject().(client.Object)
	switch object := s.Object.(type) {
	case *karpv1alpha5.Provisioner:
		if err := r.describeProvisioner(ctx, object, s.result, obstacles); err != nil {
			return err
		}
	case *awsv1alpha1.AWSNodeTemplate:
		if err := r.describeTemplate(ctx, object, s.result, obstacles); err != nil {
			return err
		}
	}
	for _, o := range obstacles {
		r.Recorder.Emit(telemetry.NotApplied(s.Object, o.message))
	}
	if lost := notTranslated(s.result.Notes); lost != "" {
		r.Recorder.Emit(telemetry.PartsLost(s.Object, lost))
	}
	if equality.Semantic.DeepEqual(base, s.Object) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, s.Object, controller.Locked(base), client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("writing the status of %s: %w", s.name(), err)
	}
	return nil
}

func (r *Reconciler) describeProvisioner(ctx context.Context, p *karpv1alpha5.Provisioner, result v1alpha5.Result, obstacles []obstacle) error {
	name(p, result)
	pool := &karpv1.NodePool{}
	found, err := r.read(ctx, result.Pool.Name, pool)
	if err != nil {
		return err
	}
	conditions := p.StatusConditions()
	describe(&p.Status.Translation, conditions, result, obstacles)
	ready := &status.Condition{Status: metav1.ConditionUnknown, Reason: karpv1alpha5.ReasonNotObserved, Message: "there is no NodePool yet"}
	p.Status.Resources = nil
	if found && metav1.IsControlledBy(pool, p) {
		p.Status.Resources = pool.Status.Resources
		ready = pool.Condition(status.ConditionReady)
	} else if found {
		ready.Message = "the NodePool of this name was not created from this object"
	}
	conditions.Set(as(karpv1alpha5.ConditionNodePoolReady, ready))
	conditions.Set(as(karpv1alpha5.ConditionActive, conditions.Root()))
	return nil
}

// name writes the names of the result into the status of a Provisioner, and removes conditions of older controllers.
func name(p *karpv1alpha5.Provisioner, result v1alpha5.Result) {
	class := result.Pool.Spec.Template.Spec.NodeClassRef
	p.Status.NodePool, p.Status.NodeClass = result.Pool.Name, class.Kind+"/"+class.Name
	known := []string{karpv1alpha5.ConditionActive, karpv1alpha5.ConditionTranslated, karpv1alpha5.ConditionApplied, karpv1alpha5.ConditionNodePoolReady}
	p.Status.Conditions = only(p.Status.Conditions, known)
}

func (r *Reconciler) describeTemplate(ctx context.Context, t *awsv1alpha1.AWSNodeTemplate, result v1alpha5.Result, obstacles []obstacle) error {
	known := []string{karpv1alpha5.ConditionTranslated, karpv1alpha5.ConditionApplied, karpv1alpha5.ConditionNodeClassReady}
	t.Status.Conditions = only(t.Status.Conditions, known)
	conditions := t.StatusConditions()
	describe(&t.Status.Translation, conditions, result, obstacles)
	t.Status.NodeClass = ""
	t.Status.Subnets, t.Status.SecurityGroups, t.Status.AMIs = nil, nil, nil
	if len(result.Classes) == 0 {
		conditions.Set(status.Condition{
			Type: karpv1alpha5.ConditionNodeClassReady, Status: metav1.ConditionFalse, Reason: karpv1alpha5.ReasonNotMade,
			Message: shortened("no EC2NodeClass can be created: " + notTranslated(result.Notes)),
		})
		return nil
	}
	t.Status.NodeClass = result.Classes[0].Name
	class := &awsv1.EC2NodeClass{}
	found, err := r.read(ctx, t.Status.NodeClass, class)
	if err != nil {
		return err
	}
	ready := &status.Condition{Status: metav1.ConditionUnknown, Reason: karpv1alpha5.ReasonNotObserved,
		Message: "the EC2NodeClass does not exist yet"}
	if found && metav1.IsControlledBy(class, t) {
		ready = class.Condition(status.ConditionReady)
		showFound(t, &class.Status)
	} else if found {
		ready.Message = "the EC2NodeClass of this name was not created from this object"
	}
	conditions.Set(as(karpv1alpha5.ConditionNodeClassReady, ready))
	return nil
}

// showFound writes the resources that were found for the class in the format of the status of AWSNodeTemplates.
func showFound(t *awsv1alpha1.AWSNodeTemplate, found *awsv1.EC2NodeClassStatus) {
	for _, subnet := range found.Subnets {
		t.Status.Subnets = append(t.Status.Subnets, awsv1alpha1.Subnet{ID: subnet.ID, Zone: subnet.Zone})
	}
	for _, group := range found.SecurityGroups {
		t.Status.SecurityGroups = append(t.Status.SecurityGroups, awsv1alpha1.SecurityGroup{ID: group.ID, Name: group.Name})
	}
	for _, ami := range found.AMIs {
		t.Status.AMIs = append(t.Status.AMIs, awsv1alpha1.AMI{ID: ami.ID, Name: ami.Name, Requirements: ami.Requirements})
	}
}

// read reads an object that may not exist, and reports whether it does.
func (r *Reconciler) read(ctx context.Context, name string, into client.Object) (found bool, err error) {
	err = r.Client.Get(ctx, client.ObjectKey{Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s %s: %w", kindOf(into), name, err)
	}
	return err == nil, nil
}

// describe writes what both kinds have in common. It omits notes on fields that only have another name now, which
// kubectl karpenter migrate reports.
func describe(t *karpv1alpha5.Translation, conditions status.ConditionSet, result v1alpha5.Result, obstacles []obstacle) {
	t.Version, t.Notes = result.Version, nil
	for _, note := range result.Notes {
		if note.Effect != v1alpha5.Carried {
			t.Notes = append(t.Notes, karpv1alpha5.Note{Field: note.Field, Effect: string(note.Effect), To: note.To, Reason: note.Reason})
		}
	}
	translated := yes(karpv1alpha5.ConditionTranslated)
	if lost := notTranslated(result.Notes); lost != "" {
		translated.Status, translated.Reason, translated.Message = metav1.ConditionFalse, karpv1alpha5.ReasonPartsLost, shortened(lost)
	}
	conditions.Set(translated)
	applied := yes(karpv1alpha5.ConditionApplied)
	if len(obstacles) > 0 {
		applied.Status, applied.Reason = metav1.ConditionFalse, obstacles[0].reason
		var messages []string
		for _, o := range obstacles {
			messages = append(messages, o.message)
		}
		applied.Message = shortened(strings.Join(messages, "; "))
	}
	conditions.Set(applied)
}

// notTranslated returns the names of the fields without an equivalent, or an empty string if there are none.
func notTranslated(notes []v1alpha5.Note) string {
	var fields []string
	for _, note := range notes {
		if note.Effect == v1alpha5.Impossible {
			fields = append(fields, note.Field+": "+note.Reason)
		}
	}
	return strings.Join(fields, "; ")
}

// only returns the conditions of the given types and Ready: older controllers have left some that the API server
// rejects today.
func only(conditions []status.Condition, types []string) []status.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c status.Condition) bool {
		return c.Type != status.ConditionReady && !slices.Contains(types, c.Type) || c.Reason == ""
	})
}

func yes(condition string) status.Condition {
	return status.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition}
}

// as returns a condition of another object under a type of this package.
func as(condition string, of *status.Condition) status.Condition {
	if of == nil {
		return status.Condition{Type: condition, Status: metav1.ConditionUnknown, Reason: karpv1alpha5.ReasonNotObserved}
	}
	c := status.Condition{Type: condition, Status: of.Status, Reason: of.Reason, Message: of.Message}
	if c.Reason == "" || c.Reason == status.ConditionReady {
		c.Reason = condition
	}
	return c
}

func shortened(message string) string {
	if len(message) <= longestMessage {
		return message
	}
	return strings.ToValidUTF8(message[:longestMessage], "") + "..."
}
