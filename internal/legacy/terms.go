package legacy

import awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"

// SelectorTerms reads the selectors of an AWSNodeTemplate out of the spec of an object that should have terms instead:
// subnetSelector, securityGroupSelector and amiSelector, those that are there. It gives a spec with nothing but the terms that
// say the same, and notes of what is said differently; Impossible where a class cannot have so many terms.
func SelectorTerms(spec map[string]any) (awsv1.EC2NodeClassSpec, []Note) {
	told := &notes{}
	c := &cloudPart{section: newSection("spec", spec, told)}
	c.selectSubnets(c.readSelector("subnetSelector"))
	c.selectGroups(c.readSelector("securityGroupSelector"))
	c.spec.AMISelectorTerms = c.readImageSelector()
	return c.spec, told.sorted()
}
