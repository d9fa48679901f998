"""The pages: one module a noun, each with the context that its template may use."""
