package v1beta1

import (
	"strings"
)

// These are the family that v1 does not have, its replacement, and the values of AnnotationUbuntu for other fields.
const (
	ubuntu       = "Ubuntu"
	amazonLinux2 = "AL2"

	madeFamily = "amiFamily"           // amiFamily was Ubuntu
	madeDisks  = "blockDeviceMappings" // they were not set, and are those of Ubuntu
	madeImages = "incompatible"        // amiSelectorTerms were not set, and select nothing
)

// aliases maps lower-case names to the families that have an alias in v1.
var aliases = map[string]string{
	"al2": "AL2", "al2023": "AL2023", "bottlerocket": "Bottlerocket",
	"windows2019": "Windows2019", "windows2022": "Windows2022", "windows2025": "Windows2025",
}

const latest = "@latest"

// NoImage is the ID of the image of a class of the family Ubuntu that does not specify an image: v1 has no alias for
// the recommended ones. No machine can be launched until the user specifies an image.
const NoImage = "ami-placeholder"

func noImages() []any { return []any{map[string]any{"id": NoImage}} }

func ubuntuDisks() []any {
	return []any{map[string]any{
		"deviceName": "/dev/sda1",
		"rootVolume": true,
		"ebs":        map[string]any{"encrypted": true, "volumeType": "gp3", "volumeSize": "20Gi"},
	}}
}

func classToV1(_ Converter, class map[string]any) {
	spec := child(class, "spec")
	if spec == nil {
		return
	}
	family := text(spec, "amiFamily")
	if family == ubuntu {
		ubuntuToV1(class, spec)
		return
	}
	if name := strings.ToLower(family); aliases[name] == family && family != "" && isEmpty(spec["amiSelectorTerms"]) {
		spec["amiSelectorTerms"] = []any{map[string]any{"alias": name + latest}}
		delete(spec, "amiFamily")
	}
}

func ubuntuToV1(class, spec map[string]any) {
	made := []string{madeFamily}
	spec["amiFamily"] = amazonLinux2
	if isEmpty(spec["blockDeviceMappings"]) {
		made = append(made, madeDisks)
		spec["blockDeviceMappings"] = ubuntuDisks()
	}
	if isEmpty(spec["amiSelectorTerms"]) {
		made = append(made, madeImages)
		spec["amiSelectorTerms"] = noImages()
	}
	annotate(class, AnnotationUbuntu, strings.Join(made, ","))
}

func classFromV1(class map[string]any) {
	spec := child(class, "spec")
	if spec == nil {
		return
	}
	if note, ok := annotation(class, AnnotationUbuntu); ok {
		unannotate(class, AnnotationUbuntu)
		ubuntuFromV1(note, spec)
		return
	}
	if present(spec, "amiFamily") {
		return
	}
	if family := onlyLatest(spec["amiSelectorTerms"]); family != "" {
		spec["amiFamily"] = family
		delete(spec, "amiSelectorTerms")
	}
}

// ubuntuFromV1 reverts the added fields, unless they have been changed since.
func ubuntuFromV1(note string, spec map[string]any) {
	made := func(field string) bool { return strings.Contains(","+note+",", ","+field+",") }
	if !made(madeFamily) || text(spec, "amiFamily") != amazonLinux2 {
		return
	}
	spec["amiFamily"] = ubuntu
	if made(madeDisks) && written(spec["blockDeviceMappings"]) == written(ubuntuDisks()) {
		delete(spec, "blockDeviceMappings")
	}
	if made(madeImages) && written(spec["amiSelectorTerms"]) == written(noImages()) {
		delete(spec, "amiSelectorTerms")
	}
}

// onlyLatest returns the family if the terms are exactly one alias of its latest images, otherwise an empty string.
func onlyLatest(terms any) string {
	list, _ := terms.([]any)
	if len(list) != 1 {
		return ""
	}
	term, _ := list[0].(map[string]any)
	name, isLatest := strings.CutSuffix(text(term, "alias"), latest)
	if !isLatest || len(term) != 1 {
		return ""
	}
	return aliases[name]
}

// isEmpty reports whether a list is absent or has no members.
func isEmpty(list any) bool {
	members, ok := list.([]any)
	return list == nil || ok && len(members) == 0
}
