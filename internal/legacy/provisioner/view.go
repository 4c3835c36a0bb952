package provisioner

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// view is the state at the beginning of a pass. Its events trigger the next pass, which sees the writes of this one.
type view struct {
	sources []*source
	// pools and classes are all objects in the API, regardless of their writer. classes is empty with simulated
	// machines.
	pools   []karpv1.NodePool
	classes []awsv1.EC2NodeClass
}

// separate returns the Provisioners that have an EC2NodeClass of their own next to that of their template. A class
// that is created from an inline provider has the Provisioner's name.
func (v *view) separate() map[string]bool {
	names := map[string]bool{}
	for i := range v.classes {
		owner := metav1.GetControllerOf(&v.classes[i])
		if owner == nil || owner.Kind != karpv1alpha5.Kind {
			continue
		}
		if name := v.classes[i].Name; name != owner.Name && name != v1alpha5.InlineClass(owner.Name) {
			names[owner.Name] = true
		}
	}
	return names
}

// using returns the names of the classes that pools of Provisioners reference, by Provisioner.
func (v *view) using() map[string]string {
	classes := map[string]string{}
	for i := range v.pools {
		if owner := metav1.GetControllerOf(&v.pools[i]); owner != nil && owner.Kind == karpv1alpha5.Kind {
			classes[owner.Name] = v.pools[i].Spec.Template.Spec.NodeClassRef.Name
		}
	}
	return classes
}

// needed reports whether an existing pool, or one to be created, references the class: machines are launched with it.
func (v *view) needed(class string) bool {
	for i := range v.pools {
		if names(&v.pools[i], class) {
			return true
		}
	}
	return slices.ContainsFunc(v.sources, func(s *source) bool { return s.result.Pool != nil && names(s.result.Pool, class) })
}

// wanted reports whether a source has the class as a result.
func (v *view) wanted(class string) bool {
	return slices.ContainsFunc(v.sources, func(s *source) bool { return s.makes(class) })
}

// former returns the source from which a class was created and which has other results now, or nil if there is none.
// The source that now has a result of this name takes the class over as soon as no pool uses its old form. A deletion
// of the class would first wait for its nodes.
func (v *view) former(object client.Object) *source {
	class, isClass := object.(*awsv1.EC2NodeClass)
	if !isClass {
		return nil
	}
	owner := metav1.GetControllerOf(class)
	if owner == nil {
		return nil
	}
	i := slices.IndexFunc(v.sources, func(s *source) bool { return s.GetUID() == owner.UID })
	if i < 0 || v.sources[i].leaving() || v.sources[i].makes(class.Name) {
		return nil
	}
	return v.sources[i]
}

// served reports whether the pool of a source launches machines with the class, at the beginning of the pass.
func (v *view) served(s *source, class string) bool {
	return slices.ContainsFunc(v.pools, func(pool karpv1.NodePool) bool {
		return metav1.IsControlledBy(&pool, s) && names(&pool, class)
	})
}

// makes reports whether the source has a class with the name as a result.
func (s *source) makes(class string) bool {
	return slices.ContainsFunc(s.result.Classes, func(c *awsv1.EC2NodeClass) bool { return c.Name == class })
}

// names reports whether a pool references the EC2NodeClass.
func names(pool *karpv1.NodePool, class string) bool {
	ref := pool.Spec.Template.Spec.NodeClassRef
	return ref.Group == awsv1.Group && ref.Kind == awsv1.Kind && ref.Name == class
}
