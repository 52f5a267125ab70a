"""What can be asked (protocols) and who answers (adapters); torch and transformers stay inside the adapters."""
