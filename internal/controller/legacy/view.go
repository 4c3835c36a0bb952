package legacy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/legacy"
)

// view is what there is at the beginning of a pass. What the pass writes is seen by the next one, which its events start.
type view struct {
	sources []*source
	// pools and classes are all that are in the API, whoever wrote them; none where machines are simulated.
	pools   []karpv1.NodePool
	classes []awsv1.EC2NodeClass
}

// separate are the Provisioners that have an EC2NodeClass of their own beside that of their template: one that is made of
// an inline provider has the Provisioner's name.
func (v *view) separate() map[string]bool {
	names := map[string]bool{}
	for i := range v.classes {
		owner := metav1.GetControllerOf(&v.classes[i])
		if owner == nil || owner.Kind != karpv1alpha5.Kind {
			continue
		}
		if name := v.classes[i].Name; name != owner.Name && name != legacy.InlineClass(owner.Name) {
			names[owner.Name] = true
		}
	}
	return names
}

// using are the names of the classes that pools of Provisioners name, by Provisioner.
func (v *view) using() map[string]string {
	classes := map[string]string{}
	for i := range v.pools {
		if owner := metav1.GetControllerOf(&v.pools[i]); owner != nil && owner.Kind == karpv1alpha5.Kind {
			classes[owner.Name] = v.pools[i].Spec.Template.Spec.NodeClassRef.Name
		}
	}
	return classes
}

// needed says whether a pool that is there, or is to be, names the class: machines are made with it.
func (v *view) needed(class string) bool {
	for i := range v.pools {
		if names(&v.pools[i], class) {
			return true
		}
	}
	return slices.ContainsFunc(v.sources, func(s *source) bool { return s.result.Pool != nil && names(s.result.Pool, class) })
}

// wanted says whether an older object has become the class.
func (v *view) wanted(class string) bool {
	return slices.ContainsFunc(v.sources, func(s *source) bool { return s.makes(class) })
}

// former is the older object from which a class was made and that has become other classes now; nil if there is none. Who
// has become a class of this name takes it over as soon as nobody is served by it as it was: deleting it first would wait
// for its nodes.
func (v *view) former(class client.Object) *source {
	owner := metav1.GetControllerOf(class)
	if owner == nil {
		return nil
	}
	i := slices.IndexFunc(v.sources, func(s *source) bool { return s.GetUID() == owner.UID })
	if i < 0 || v.sources[i].leaving() || v.sources[i].makes(class.GetName()) {
		return nil
	}
	return v.sources[i]
}

// served says whether the pool of a source makes machines with the class, at the beginning of the pass.
func (v *view) served(s *source, class string) bool {
	return slices.ContainsFunc(v.pools, func(pool karpv1.NodePool) bool {
		return metav1.IsControlledBy(&pool, s) && names(&pool, class)
	})
}

// makes says whether the source has become a class of the name.
func (s *source) makes(class string) bool {
	return slices.ContainsFunc(s.result.Classes, func(c *awsv1.EC2NodeClass) bool { return c.Name == class })
}

// names says whether a pool makes machines with the EC2NodeClass.
func names(pool *karpv1.NodePool, class string) bool {
	ref := pool.Spec.Template.Spec.NodeClassRef
	return ref.Group == awsv1.Group && ref.Kind == awsv1.Kind && ref.Name == class
}
