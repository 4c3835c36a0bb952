package v1alpha5

import awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"

// FirstWithoutAL2 is the first minor version of Kubernetes without images of Amazon Linux 2.
const FirstWithoutAL2 = withoutAL2

// ReservedTag reports whether only the provider sets a tag, so that a class cannot contain it.
func ReservedTag(key string) bool { return key == "" || reserved(key) }

// SelectorTerms reads the selectors of an AWSNodeTemplate in the spec of an object that should have terms instead:
// subnetSelector, securityGroupSelector and amiSelector, if present. It returns a spec that only contains the
// equivalent terms, and notes on differences. A note is Impossible if a class cannot have so many terms.
func SelectorTerms(spec map[string]any) (awsv1.EC2NodeClassSpec, []Note) {
	collected := &notes{}
	c := &cloudPart{section: newSection("spec", spec, collected)}
	c.selectSubnets(c.readSelector("subnetSelector"))
	c.selectGroups(c.readSelector("securityGroupSelector"))
	c.spec.AMISelectorTerms = c.readImageSelector()
	return c.spec, collected.sorted()
}
