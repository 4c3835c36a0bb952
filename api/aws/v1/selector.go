package v1

// SubnetSelectorTerm matches subnets that have all the tags, or the id.
type SubnetSelectorTerm struct {
	// Tags that the subnet has; the value * stands for any value.
	// +kubebuilder:validation:XValidation:message="tag keys and values must not be empty",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the subnet.
	// +kubebuilder:validation:Pattern:=`^subnet-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm matches security groups that have all the tags, or the id, or the name.
type SecurityGroupSelectorTerm struct {
	// Tags that the security group has; the value * stands for any value.
	// +kubebuilder:validation:XValidation:message="tag keys and values must not be empty",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the security group.
	// +kubebuilder:validation:Pattern:=`^sg-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the security group, which is not its tag Name.
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm matches capacity reservations that have all that it names.
type CapacityReservationSelectorTerm struct {
	// Tags that the reservation has; the value * stands for any value.
	// +kubebuilder:validation:XValidation:message="tag keys and values must not be empty",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern:=`^cr-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// OwnerID is the account that owns the reservation: 12 digits.
	// +kubebuilder:validation:Pattern:=`^[0-9]{12}$`
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria says whether machines use the reservation by being like it
	// (open) or by naming it (targeted).
	// +kubebuilder:validation:Enum:={open,targeted}
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// PlacementGroupSelector names one placement group.
type PlacementGroupSelector struct {
	// Name of the placement group.
	// +kubebuilder:validation:MinLength:=1
	// +optional
	Name string `json:"name,omitempty"`
	// ID of the placement group.
	// +kubebuilder:validation:Pattern:=`^pg-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}

// AMISelectorTerm matches machine images that have all that it names.
type AMISelectorTerm struct {
	// Alias is an image recommended by AWS: a family, @ and a version or latest, for
	// example al2023@latest or bottlerocket@v1.20.4. Families: al2, al2023, bottlerocket,
	// windows2019, windows2022, windows2025; those of Windows have latest only.
	// +kubebuilder:validation:XValidation:message="alias must be family@version, such as al2023@latest",rule="self.matches('^[a-zA-Z0-9]+@.+$')"
	// +kubebuilder:validation:XValidation:message="the family of alias must be al2, al2023, bottlerocket, windows2019, windows2022 or windows2025",rule="self.find('^[^@]+') in ['al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025']"
	// +kubebuilder:validation:XValidation:message="the version of a Windows alias must be latest",rule="!self.startsWith('windows') || self.matches('^windows[0-9]+@latest$')"
	// +kubebuilder:validation:MaxLength:=30
	// +optional
	Alias string `json:"alias,omitempty"`
	// Tags that the image has; the value * stands for any value.
	// +kubebuilder:validation:XValidation:message="tag keys and values must not be empty",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the image.
	// +kubebuilder:validation:Pattern:=`^ami-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the image, in which * stands for any text. It is not the tag Name.
	// +optional
	Name string `json:"name,omitempty"`
	// Owner of the image: an account id, self, amazon or another alias. Unset: self and
	// amazon for names, any for tags.
	// +optional
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or ARN of a Systems Manager parameter that holds an image id.
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}
