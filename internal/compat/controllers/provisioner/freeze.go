package provisioner

import (
	"encoding/json"

	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// freeze marks the sources with a field that was set aside before it was decoded, and those that share a template with
// one of them, because the results of all of these depend on each other. What was created from them stays as it is until
// the field is corrected: a translation of the rest would change nodes.
func (v *view) freeze() {
	using := v.using()
	unreadable := map[string]bool{} // templates
	for _, s := range v.sources {
		if s.GetAnnotations()[karpv1.AnnotationUnreadable] != "" {
			s.frozen = true
			unreadable[s.template()] = true
			if s.kind == karpv1alpha5.Kind { // its reference may be what was set aside
				unreadable[using[s.GetName()]] = true
			}
		}
	}
	delete(unreadable, "")
	for _, s := range v.sources {
		s.frozen = s.frozen || unreadable[s.template()]
	}
}

// template returns the name of the AWSNodeTemplate that a source is or uses, or an empty string.
func (s *source) template() string {
	if s.kind == awsv1alpha1.Kind {
		return s.GetName()
	}
	provisioner, ok := s.Object.(*karpv1alpha5.Provisioner)
	if !ok || provisioner.Spec == nil {
		return ""
	}
	var spec struct {
		ProviderRef struct {
			Name string `json:"name"`
		} `json:"providerRef"`
	}
	if json.Unmarshal(provisioner.Spec.Raw, &spec) != nil {
		return ""
	}
	return spec.ProviderRef.Name
}
