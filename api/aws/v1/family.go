package v1

import "strings"

// Family is an image family. Instances of one family use the same bootstrap method to join a cluster.
// +kubebuilder:validation:Enum:={AL2,AL2023,Bottlerocket,Custom,Windows2019,Windows2022,Windows2025}
type Family string

// The families.
const (
	FamilyAL2          Family = "AL2"          // Amazon Linux 2
	FamilyAL2023       Family = "AL2023"       // Amazon Linux 2023
	FamilyBottlerocket Family = "Bottlerocket" //
	FamilyCustom       Family = "Custom"       // only the user data of the class is used
	FamilyWindows2019  Family = "Windows2019"  //
	FamilyWindows2022  Family = "Windows2022"  //
	FamilyWindows2025  Family = "Windows2025"  //
)

// Families returns all families in alphabetical order.
func Families() []Family {
	return []Family{FamilyAL2, FamilyAL2023, FamilyBottlerocket, FamilyCustom, FamilyWindows2019, FamilyWindows2022, FamilyWindows2025}
}

// Windows reports whether instances of the family run Windows.
func (f Family) Windows() bool { return strings.HasPrefix(string(f), "Windows") }

// AliasParts returns the family and the version of an alias such as al2023@latest. ok is false if the term has
// no alias, or an alias that the CRD would reject.
func (t AMISelectorTerm) AliasParts() (family Family, version string, ok bool) {
	name, version, ok := strings.Cut(t.Alias, "@")
	if !ok || version == "" {
		return "", "", false
	}
	for _, family := range Families() {
		if family != FamilyCustom && strings.ToLower(string(family)) == name {
			return family, version, true
		}
	}
	return "", "", false
}

// Alias returns the family and the version of the class's alias. ok is false if it has none.
func (c *EC2NodeClass) Alias() (family Family, version string, ok bool) {
	for _, term := range c.Spec.AMISelectorTerms {
		if family, version, ok = term.AliasParts(); ok {
			return family, version, true
		}
	}
	return "", "", false
}

// Family returns the class's amiFamily or, if unset, the family of its alias. It returns "" for an object that
// the CRD would reject.
func (c *EC2NodeClass) Family() Family {
	if c.Spec.AMIFamily != nil {
		return *c.Spec.AMIFamily
	}
	family, _, _ := c.Alias()
	return family
}
